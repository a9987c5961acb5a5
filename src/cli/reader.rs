//! From an image's name to its evidence, for every command that reads one.

use std::time::Instant;

use tempfile::TempDir;

use super::args::ReadArgs;
use super::error::CliError;
use super::ordered::in_order;
use super::output::Screen;
use super::rebuild::Watch;
use super::{basis, cache, fleet, servers};
use crate::config::Fleet;
use crate::image::ImageError;
use crate::image::sources::{self, OpenOptions};
use crate::model::{Evidence, Platform};
use crate::scan::{LayerRun, Observer, ScanOptions, Scanned, Session, Silent};

/// Reads images as the command line says.
pub struct Reader<'a> {
    open: OpenOptions,
    session: Session,
    screen: &'a Screen,
    /// A cache that is gone with the run.
    _folder: Option<TempDir>,
}

/// What reading one image gave.
#[derive(Debug, Default)]
pub struct Read {
    /// Of each platform that is asked for, or that the fleet's targets are of.
    pub evidence: Vec<Evidence>,
    /// Of each of the evidence, what reading its layers took.
    pub runs: Vec<Vec<LayerRun>>,
    pub seconds: f64,
    /// What the image's name was taken for.
    pub taken_for: Option<String>,
    pub notices: Vec<String>,
}

impl<'a> Reader<'a> {
    /// `several`: of many images, each layer is to be read once.
    pub fn new(args: &ReadArgs, several: bool, screen: &'a Screen) -> Result<Self, CliError> {
        let mut scan = ScanOptions { jobs: args.jobs, catalog: basis::catalog(), ..ScanOptions::default() };
        if let Some(ratio) = args.max_ratio {
            scan.max_ratio = ratio;
        }
        if let Some(limit) = args.max_layer_size {
            scan.max_layer_bytes = limit;
        }
        let (folder, cache) = match cache::open(&args.cache, screen) {
            None if several => {
                let made = cache::temporary();
                if let Some((folder, _)) = &made {
                    // Where signals cannot be watched, an interrupt leaves a small folder of temporary files behind.
                    let _ = Watch::start(folder.path());
                }
                made.unzip()
            }
            cache => (None, cache),
        };
        let session = Session::new(scan, cache)?;
        Ok(Self { open: servers::options(&args.servers, screen)?, session, screen, _folder: folder })
    }

    /// How servers are spoken to.
    pub fn open(&self) -> &OpenOptions {
        &self.open
    }

    /// Scans one image.
    pub fn read(&self, image: &str, platform: Option<&Platform>, fleet: &Fleet) -> Result<Read, CliError> {
        let read = self.scan(image, platform, fleet);
        self.done();
        if let Some(bars) = self.screen.bars() {
            bars.clear();
        }
        let read = read?;
        self.tell(&read, false);
        Ok(read)
    }

    /// Scans images, several at once, and hands them over in their order. `in_list`: nobody typed them one by one.
    pub fn read_all(
        &self,
        images: &[String],
        in_list: bool,
        platform: Option<&Platform>,
        fleet: &Fleet,
        mut take: impl FnMut(&str, Result<Read, CliError>) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let bars = self.screen.bars();
        if images.len() > 1
            && let Some(bars) = bars
        {
            bars.begin(images.len());
        }
        let scan = |image: &String| self.scan(image, platform, fleet);
        // The one login is for the first registry that is named: not for whichever comes first.
        let threads = if self.open.login.is_some() { 1 } else { self.session.jobs() };
        let taken = in_order(images, threads, scan, |at, read| {
            if at + 1 == images.len()
                && let Some(bars) = bars
            {
                bars.clear();
            }
            read.iter().for_each(|read| self.tell(read, in_list));
            self.done();
            let taken = take(&images[at], read);
            if let Some(bars) = bars {
                bars.advance();
            }
            taken
        });
        if let Some(bars) = bars {
            bars.clear();
        }
        taken
    }

    fn tell(&self, read: &Read, in_list: bool) {
        // Of a long list, how each name is read is no news.
        let taken_for = read.taken_for.as_ref().filter(|_| !in_list || self.screen.verbose() > 0);
        taken_for.into_iter().chain(&read.notices).for_each(|notice| self.screen.notice(notice));
    }

    /// What concerns no image.
    fn done(&self) {
        if let Some(trouble) = self.session.trouble() {
            self.screen.notice(&trouble);
        }
    }

    fn scan(&self, image: &str, platform: Option<&Platform>, fleet: &Fleet) -> Result<Read, CliError> {
        let started = Instant::now();
        let mut platforms = match platform {
            Some(asked) => vec![asked.clone()],
            // A stream cannot be read a second time, should it not have what the targets would like.
            None if sources::streams(image) => Vec::new(),
            None => fleet::platforms(fleet),
        };
        let mut result = self.observed(image, &platforms);
        if platform.is_none() && matches!(result, Err(ImageError::NoSuchPlatform { .. })) {
            // Nobody asked for that platform by name: what there is gets judged, for being of another platform.
            platforms.clear();
            result = self.observed(image, &platforms);
        }
        let Scanned { evidence, taken_for, notices, runs } = result?;
        Ok(Read { evidence, runs, seconds: started.elapsed().as_secs_f64(), taken_for, notices })
    }

    fn observed(&self, image: &str, platforms: &[Platform]) -> Result<Scanned, ImageError> {
        let scan = |observer: &dyn Observer| self.session.scan(image, &self.open, platforms, observer);
        match self.screen.bars() {
            Some(bars) => scan(&bars.image()),
            None => scan(&Silent),
        }
    }
}
