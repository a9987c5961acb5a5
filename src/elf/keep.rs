//! Byte ranges copied out of a stream as they pass.

/// Ranges of a file that are wanted, filled from consecutive chunks.
#[derive(Debug, Default)]
pub struct Keep {
    ranges: Vec<(u64, u64, Vec<u8>)>,
}

impl Keep {
    /// Asks for `start..end`; bytes that have passed already stay missing.
    pub fn want(&mut self, start: u64, end: u64) {
        if start < end {
            self.ranges.push((start, end, Vec::new()));
        }
    }

    /// Asks for `start..end`, whose first bytes are known already.
    pub fn want_rest(&mut self, start: u64, end: u64, known: Vec<u8>) {
        if start < end {
            self.ranges.push((start, end, known));
        }
    }

    /// Where the next wanted byte at or behind `at` is; `None`: nothing more is wanted.
    pub fn next_wanted(&self, at: u64) -> Option<u64> {
        self.ranges.iter().filter(|r| at < r.1).map(|r| r.0.max(at)).min()
    }

    /// Shows a chunk that stands at `at`.
    pub fn see(&mut self, at: u64, chunk: &[u8]) {
        let chunk_end = at + chunk.len() as u64;
        for (start, end, bytes) in &mut self.ranges {
            let from = at.max(*start + bytes.len() as u64);
            let to = chunk_end.min(*end);
            if at < *end && chunk_end > *start && from < to && from == *start + bytes.len() as u64 {
                bytes.extend_from_slice(&chunk[(from - at) as usize..(to - at) as usize]);
            }
        }
    }

    /// The bytes of `start..end`, if they were kept.
    pub fn get(&self, start: u64, end: u64) -> Option<&[u8]> {
        self.ranges.iter().find_map(|(s, _, bytes)| {
            let from = start.checked_sub(*s)?;
            let to = end.checked_sub(*s)?;
            bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
        })
    }

    /// What was kept of `start..end`, with offsets; a byte may be in several parts.
    pub fn parts(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, &[u8])> {
        self.ranges.iter().filter_map(move |(at, _, bytes)| {
            let from = usize::try_from(start.saturating_sub(*at)).ok()?;
            let to = usize::try_from(end.checked_sub(*at)?).unwrap_or(usize::MAX).min(bytes.len());
            let part = bytes.get(from..to).filter(|p| !p.is_empty())?;
            Some((at + from as u64, part))
        })
    }

    /// The string that begins at an offset and ends with a zero within `most` bytes.
    pub fn text(&self, offset: u64, most: usize) -> Option<&[u8]> {
        self.ranges.iter().find_map(|(s, _, bytes)| {
            let from = usize::try_from(offset.checked_sub(*s)?).ok()?;
            let rest = bytes.get(from..)?;
            let end = memchr::memchr(0, &rest[..rest.len().min(most)])?;
            Some(&rest[..end])
        })
    }

    /// The kept bytes from `start` on, up to `most`.
    pub fn get_from(&self, start: u64, most: usize) -> Option<&[u8]> {
        self.ranges.iter().find_map(|(s, _, bytes)| {
            let from = usize::try_from(start.checked_sub(*s)?).ok()?;
            let rest = bytes.get(from..)?;
            (!rest.is_empty()).then(|| &rest[..rest.len().min(most)])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_fill_from_chunks() {
        let data: Vec<u8> = (0..100).collect();
        let mut keep = Keep::default();
        keep.want(10, 20);
        keep.want(15, 40);
        assert_eq!(keep.next_wanted(0), Some(10));
        for (i, chunk) in data.chunks(7).enumerate() {
            keep.see(i as u64 * 7, chunk);
        }
        assert_eq!(keep.get(12, 18), Some(&data[12..18]));
        assert_eq!(keep.get(16, 40), Some(&data[16..40]));
        assert_eq!(keep.get(5, 12), None);
        assert_eq!(keep.next_wanted(40), None);
        assert_eq!(keep.next_wanted(18), Some(18));
    }
}
