//! Progress of a scan: a bar per layer under way, with bytes and rate, on standard error.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::model::Digest;
use crate::scan::Observer;

/// Layers whose size is known.
const SIZED: &str = "{prefix:14} [{bar:24}] {bytes:>11} of {total_bytes:<11} {bytes_per_sec}";
const UNSIZED: &str = "{prefix:14} {spinner} {bytes:>11} {bytes_per_sec}";
const TOTAL: &str = "{prefix:14} [{bar:24}] {pos:>11} of {len}";
/// Layers smaller than this are done before a bar could be read.
const SMALL: u64 = 1 << 20;

/// Draws bars; used only where standard error is a terminal.
pub struct Bars {
    all: MultiProgress,
    layers: Mutex<HashMap<(usize, usize), ProgressBar>>,
    /// Images begun so far.
    images: AtomicUsize,
    /// Of several images, how many are done.
    total: Mutex<Option<ProgressBar>>,
}

impl Bars {
    pub fn new() -> Self {
        Self::on(ProgressDrawTarget::stderr_with_hz(10))
    }

    fn on(target: ProgressDrawTarget) -> Self {
        Self {
            all: MultiProgress::with_draw_target(target),
            layers: Mutex::default(),
            images: AtomicUsize::new(0),
            total: Mutex::default(),
        }
    }

    /// The bars of one more image.
    pub fn image(&self) -> ImageBars<'_> {
        ImageBars { bars: self, image: self.images.fetch_add(1, Ordering::Relaxed) }
    }

    /// Counts images, where there are several.
    pub fn begin(&self, images: usize) {
        let style = ProgressStyle::with_template(TOTAL).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.all.insert(0, ProgressBar::new(images as u64));
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix("images");
        *self.total.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
    }

    /// One image is done.
    pub fn advance(&self) {
        if let Some(bar) = &*self.total.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.inc(1);
        }
    }

    /// Takes the bars off the terminal while something else is written to it.
    pub fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.all.suspend(write)
    }

    /// Takes all bars off the terminal.
    pub fn clear(&self) {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, bar) in layers.drain() {
            bar.finish_and_clear();
        }
        if let Some(bar) = self.total.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
        // A terminal that cannot be cleared is no reason to fail a scan.
        let _ = self.all.clear();
    }

    fn bar(&self, layer: (usize, usize)) -> Option<ProgressBar> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner).get(&layer).cloned()
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The bars of one image's layers.
pub struct ImageBars<'a> {
    bars: &'a Bars,
    image: usize,
}

impl Drop for ImageBars<'_> {
    fn drop(&mut self) {
        let mut layers = self.bars.layers.lock().unwrap_or_else(PoisonError::into_inner);
        layers.retain(|(image, _), bar| {
            if *image == self.image {
                bar.finish_and_clear();
                self.bars.all.remove(bar);
            }
            *image != self.image
        });
    }
}

impl Observer for ImageBars<'_> {
    fn layer_started(&self, layer: usize, digest: Option<&Digest>, stored: Option<u64>) {
        if stored.is_some_and(|n| n < SMALL) {
            return;
        }
        let template = if stored.is_some() { SIZED } else { UNSIZED };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bars.all.add(stored.map_or_else(ProgressBar::new_spinner, ProgressBar::new));
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(digest.map_or_else(|| format!("layer {}", layer + 1), Digest::short));
        bar.enable_steady_tick(Duration::from_millis(250));
        self.bars.layers.lock().unwrap_or_else(PoisonError::into_inner).insert((self.image, layer), bar);
    }

    fn bytes(&self, layer: usize, stored: u64) {
        if let Some(bar) = self.bars.bar((self.image, layer)) {
            bar.inc(stored);
        }
    }

    fn layer_done(&self, layer: usize) {
        let bar = self.bars.layers.lock().unwrap_or_else(PoisonError::into_inner).remove(&(self.image, layer));
        if let Some(bar) = bar {
            bar.finish_and_clear();
            self.bars.all.remove(&bar);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_understood() {
        for template in [SIZED, UNSIZED, TOTAL] {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    #[test]
    fn layers_come_and_go_in_any_order() {
        let bars = Bars::on(ProgressDrawTarget::hidden());
        bars.begin(2);
        let (one, two) = (bars.image(), bars.image());
        one.layer_started(3, None, Some(SMALL));
        one.layer_started(1, Some(&Digest::of(b"x")), None);
        two.layer_started(3, None, Some(SMALL));
        one.bytes(3, 10);
        one.bytes(7, 10);
        one.layer_done(3);
        one.layer_done(3);
        assert!(bars.bar((0, 3)).is_none() && bars.bar((0, 1)).is_some() && bars.bar((1, 3)).is_some());
        drop(one);
        assert!(bars.bar((0, 1)).is_none() && bars.bar((1, 3)).is_some());
        bars.advance();
        bars.clear();
        assert!(bars.bar((1, 3)).is_none());
    }
}
