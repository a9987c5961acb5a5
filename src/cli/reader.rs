//! From an image's name to its evidence, for every command that reads one.

use super::args::ReadArgs;
use super::error::CliError;
use super::output::Screen;
use super::progress::Bars;
use super::{fleet, servers};
use crate::config::Fleet;
use crate::image::ImageError;
use crate::image::sources::{self, OpenOptions};
use crate::model::{Evidence, Platform};
use crate::scan::{self, ScanOptions, Scanned, Silent};

/// Reads images as the command line says.
pub struct Reader<'a> {
    open: OpenOptions,
    scan: ScanOptions,
    screen: &'a Screen,
}

impl<'a> Reader<'a> {
    pub fn new(args: &ReadArgs, screen: &'a Screen) -> Result<Self, CliError> {
        let mut scan = ScanOptions { jobs: args.jobs, ..ScanOptions::default() };
        if let Some(ratio) = args.max_ratio {
            scan.max_ratio = ratio;
        }
        if let Some(limit) = args.max_layer_size {
            scan.max_layer_bytes = limit;
        }
        Ok(Self { open: servers::options(&args.servers)?, scan, screen })
    }

    /// How servers are spoken to.
    pub fn open(&self) -> &OpenOptions {
        &self.open
    }

    /// Scans one image: the evidence of each platform that is asked for, or that the fleet's targets are of.
    pub fn read(&self, image: &str, platform: Option<&Platform>, fleet: &Fleet) -> Result<Vec<Evidence>, CliError> {
        let mut options = self.scan.clone();
        options.platforms = match platform {
            Some(asked) => vec![asked.clone()],
            // A stream cannot be read a second time, should it not have what the targets would like.
            None if sources::streams(image) => Vec::new(),
            None => fleet::platforms(fleet),
        };
        let mut result = self.observed(image, &options);
        if platform.is_none() && matches!(result, Err(ImageError::NoSuchPlatform { .. })) {
            // Nobody asked for that platform by name: what there is gets judged, for being of another platform.
            options.platforms.clear();
            result = self.observed(image, &options);
        }
        let scanned = result?;
        for notice in &scanned.notices {
            self.screen.notice(notice);
        }
        Ok(scanned.evidence)
    }

    fn observed(&self, image: &str, options: &ScanOptions) -> Result<Scanned, ImageError> {
        if !self.screen.draws() {
            return scan::run(image, &self.open, options, &Silent);
        }
        let bars = Bars::new();
        let scanned = scan::run(image, &self.open, options, &bars);
        bars.clear();
        scanned
    }
}
