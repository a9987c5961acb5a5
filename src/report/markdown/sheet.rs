//! A text that never grows beyond its bound, and says what it leaves out.

/// Bytes that are kept for the word on what is left out.
const WORD: usize = 80;

/// Markdown that grows by whole blocks.
pub(super) struct Sheet {
    out: String,
    most: usize,
}

/// What stands before and after the items of a list, and how the rest is told.
pub(super) struct Around<'a> {
    pub before: &'a str,
    pub after: &'a str,
    /// `findings`, as in `… and 3 more findings`.
    pub what: &'a str,
}

impl Sheet {
    /// Of so many bytes at most.
    pub fn new(most: usize) -> Self {
        Self { out: String::new(), most }
    }

    pub fn room(&self) -> usize {
        self.most.saturating_sub(self.out.len())
    }

    /// A block, if it fits.
    pub fn put(&mut self, block: &str) -> bool {
        let fits = block.len() <= self.room();
        if fits {
            self.out.push_str(block);
        }
        fits
    }

    /// Whole lines, as many as fit into `share` bytes, and how many there are more. False: there was no room for any.
    pub fn list(&mut self, around: &Around<'_>, items: &[String], share: usize) -> bool {
        let fixed = around.before.len() + around.after.len() + WORD + around.what.len();
        let Some(mut left) = share.min(self.room()).checked_sub(fixed) else { return false };
        let fits = |item: &&String| match left.checked_sub(item.len() + 1) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let shown: Vec<&String> = items.iter().take_while(fits).collect();
        self.out.push_str(around.before);
        for item in &shown {
            self.out.push_str(item);
            self.out.push('\n');
        }
        if let Some(more) = items.len().checked_sub(shown.len()).filter(|&n| n > 0) {
            self.out.push_str(&format!("\n… and {more} more {}\n", around.what));
        }
        self.out.push_str(around.after);
        true
    }

    pub fn finish(self) -> String {
        self.out
    }
}

/// The fixed lines around what unfolds on a click. `summary` is HTML.
pub(super) fn details(summary: &str) -> String {
    format!("\n<details><summary>{summary}</summary>\n\n")
}

pub(super) const END_OF_DETAILS: &str = "\n</details>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_grows_beyond_its_bound_and_counts_the_rest() {
        let items: Vec<String> = (0..50).map(|n| format!("- item {n}")).collect();
        let around = Around { before: "\nhead\n\n", after: END_OF_DETAILS, what: "items" };
        for most in 0..1200 {
            let mut sheet = Sheet::new(most);
            sheet.put("first\n");
            let any = sheet.list(&around, &items, usize::MAX);
            let text = sheet.finish();
            assert!(text.len() <= most, "{most}");
            let shown = text.lines().filter(|l| l.starts_with("- ")).count();
            if any && shown < items.len() {
                assert!(text.contains(&format!("… and {} more items\n", items.len() - shown)), "{text}");
            }
            assert!(any || text.len() <= 6);
        }
        let mut sheet = Sheet::new(10_000);
        assert!(sheet.list(&around, &items, 300));
        assert!((150..=300).contains(&sheet.finish().len()));
    }
}
