//! The file's body as the readers of containers see it: whatever they move past, the ELF tables get to see the parts
//! that they asked for.

use std::io;

use crate::elf::Tables;
use crate::stream::Body;

/// A body that shows what is passed.
pub(super) struct Passing<'a> {
    body: &'a mut dyn Body,
    tables: Option<&'a mut Tables>,
}

impl<'a> Passing<'a> {
    pub(super) fn new(body: &'a mut dyn Body, tables: Option<&'a mut Tables>) -> Self {
        Self { body, tables }
    }

    /// Where the next byte that is wanted lies, if among the next `n`.
    fn wanted(&self, n: u64) -> Option<u64> {
        let at = self.body.position();
        self.tables.as_ref()?.next_wanted(at).filter(|w| *w < at.saturating_add(n))
    }
}

impl Body for Passing<'_> {
    fn window(&mut self, min: usize) -> io::Result<&[u8]> {
        self.body.window(min)
    }

    fn consume(&mut self, n: usize) {
        let at = self.body.position();
        if self.wanted(n as u64).is_some()
            && let Some(tables) = &mut self.tables
            // These bytes are in memory already.
            && let Ok(window) = self.body.window(n)
        {
            tables.see(at, &window[..window.len().min(n)]);
        }
        self.body.consume(n);
    }

    fn skip(&mut self, n: u64) -> io::Result<u64> {
        let mut left = n;
        while left > 0 {
            let Some(wanted) = self.wanted(left) else {
                left -= self.body.skip(left)?;
                break;
            };
            let before = wanted - self.body.position();
            let skipped = self.body.skip(before)?;
            left -= skipped;
            let window = self.body.window(1)?;
            if skipped < before || window.is_empty() {
                break;
            }
            let step = (window.len() as u64).min(left) as usize;
            if let Some(tables) = &mut self.tables {
                tables.see(wanted, &window[..step]);
            }
            self.body.consume(step);
            left -= step as u64;
        }
        Ok(n - left)
    }

    fn position(&self) -> u64 {
        self.body.position()
    }

    fn len(&self) -> Option<u64> {
        self.body.len()
    }
}
