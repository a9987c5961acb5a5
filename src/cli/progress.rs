//! Progress of a scan: a bar per layer under way, with bytes and rate, on standard error.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::model::Digest;
use crate::scan::Observer;

/// Layers whose size is known.
const SIZED: &str = "{prefix:14} [{bar:24}] {bytes:>11} of {total_bytes:<11} {bytes_per_sec}";
const UNSIZED: &str = "{prefix:14} {spinner} {bytes:>11} {bytes_per_sec}";
/// Layers smaller than this are done before a bar could be read.
const SMALL: u64 = 1 << 20;

/// Draws bars; used only where standard error is a terminal.
pub struct Bars {
    all: MultiProgress,
    layers: Mutex<HashMap<usize, ProgressBar>>,
}

impl Bars {
    pub fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        Self { all: MultiProgress::with_draw_target(target), layers: Mutex::new(HashMap::new()) }
    }

    /// Takes all bars off the terminal.
    pub fn clear(&self) {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, bar) in layers.drain() {
            bar.finish_and_clear();
        }
        // A terminal that cannot be cleared is no reason to fail a scan.
        let _ = self.all.clear();
    }

    fn bar(&self, layer: usize) -> Option<ProgressBar> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner).get(&layer).cloned()
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Observer for Bars {
    fn layer_started(&self, layer: usize, digest: Option<&Digest>, stored: Option<u64>) {
        if stored.is_some_and(|n| n < SMALL) {
            return;
        }
        let template = if stored.is_some() { SIZED } else { UNSIZED };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.all.add(stored.map_or_else(ProgressBar::new_spinner, ProgressBar::new));
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(digest.map_or_else(|| format!("layer {}", layer + 1), Digest::short));
        bar.enable_steady_tick(Duration::from_millis(250));
        self.layers.lock().unwrap_or_else(PoisonError::into_inner).insert(layer, bar);
    }

    fn bytes(&self, layer: usize, stored: u64) {
        if let Some(bar) = self.bar(layer) {
            bar.inc(stored);
        }
    }

    fn layer_done(&self, layer: usize) {
        let bar = self.layers.lock().unwrap_or_else(PoisonError::into_inner).remove(&layer);
        if let Some(bar) = bar {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_understood() {
        for template in [SIZED, UNSIZED] {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    #[test]
    fn layers_come_and_go_in_any_order() {
        let bars =
            Bars { all: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()), layers: Mutex::default() };
        bars.layer_started(3, None, Some(SMALL));
        bars.layer_started(1, Some(&Digest::of(b"x")), None);
        bars.bytes(3, 10);
        bars.bytes(7, 10);
        bars.layer_done(3);
        bars.layer_done(3);
        assert!(bars.bar(3).is_none() && bars.bar(1).is_some());
        bars.clear();
    }
}
