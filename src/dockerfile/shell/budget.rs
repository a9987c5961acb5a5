//! What reading the commands of one file may cost, shared by all of its bodies.

use std::cell::Cell;

/// Bytes of words, values and the variables that commands see.
const MOST_BYTES: usize = 64 << 20;

/// Steps of matching patterns.
const MOST_WORK: usize = 1 << 27;

/// Commands and compound commands.
const MOST_STEPS: usize = 1 << 17;

/// What is left. Where there is nothing left, values are unknown and commands are left out, and the body counts as
/// one that could not be parsed.
#[derive(Debug)]
pub struct Budget {
    bytes: Cell<usize>,
    work: Cell<usize>,
    steps: Cell<usize>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: Cell::new(MOST_BYTES), work: Cell::new(MOST_WORK), steps: Cell::new(MOST_STEPS) }
    }
}

impl Budget {
    /// Takes bytes; false when there are not enough left.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        take(&self.bytes, bytes)
    }

    /// Takes steps of matching.
    pub(super) fn work(&self, steps: usize) -> bool {
        take(&self.work, steps)
    }

    /// Takes one command.
    pub(super) fn step(&self) -> bool {
        take(&self.steps, 1)
    }
}

fn take(from: &Cell<usize>, amount: usize) -> bool {
    let left = from.get().checked_sub(amount);
    from.set(left.unwrap_or(0));
    left.is_some()
}
