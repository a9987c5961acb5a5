//! Sections of images, as documents of several images gather them: the worst first, as many as have room.

use super::table::overview::ImageRow;
use super::{Report, Tool};
use crate::model::Verdict;

/// The images of a document.
pub(super) struct Sections {
    /// Bytes of all sections that are kept.
    most: usize,
    /// Of every image.
    pub rows: Vec<ImageRow>,
    /// Worst first, each with the place of its row; those that have no room any more are dropped.
    pub kept: Vec<Section>,
    pub tool: Option<Tool>,
}

pub(super) struct Section {
    worst: Verdict,
    pub row: usize,
    pub text: String,
}

impl Sections {
    pub fn new(most: usize) -> Self {
        Self { most, rows: Vec::new(), kept: Vec::new(), tool: None }
    }

    /// Adds an image; `text` is its section. `unread`: it could not be looked at.
    pub fn add(&mut self, report: &Report, unread: bool, text: String) {
        let row = ImageRow::new(report, unread);
        let worst = if unread { Verdict::Fail } else { row.worst() };
        self.kept.push(Section { worst, row: self.rows.len(), text });
        self.rows.push(row);
        self.tool.get_or_insert_with(|| report.tool.clone());
        self.kept.sort_by_key(|section| (section.worst, section.row));
        let mut sum = 0;
        let fits = |section: &&Section| {
            sum += section.text.len();
            sum <= self.most
        };
        // One is always told of.
        let keep = self.kept.iter().take_while(fits).count().max(1);
        self.kept.truncate(keep);
    }
}
