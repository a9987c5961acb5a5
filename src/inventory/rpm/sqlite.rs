//! A SQLite database, as far as it takes to read the blobs of one table. Numbers are big-endian.
//!
//! The table is a tree of pages, whose leaves hold its rows; what does not fit goes on in a chain of overflow pages.
//! No page is visited twice, so that a file which leads in circles ends too.

const MAGIC: &[u8] = b"SQLite format 3\0";

/// Bytes before the tree of the first page.
const FILE_HEADER: usize = 100;

const LEAF: u8 = 0x0d;
const INTERIOR: u8 = 0x05;

/// Hands over the blobs of a table, one a row; `None` for a row whose blob cannot be read.
pub fn blobs(file: &[u8], table: &str, each: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), String> {
    let mut reader = Reader::new(file).ok_or("rpm database of an unknown form (not SQLite) is not read")?;
    let mut root = None;
    reader.rows(1, &mut |row| {
        // sqlite_schema: type, name, tbl_name, rootpage, sql.
        let mut values = Values::of(row);
        let (kind, name) = (values.next(), values.next());
        let page = values.nth(1);
        if let (Some(Value::Text(b"table")), Some(Value::Text(name)), Some(Value::Number(page))) =
            (kind, name, page)
            && name == table.as_bytes()
        {
            root = u32::try_from(page).ok();
        }
    })?;
    let root = root.ok_or_else(|| format!("the rpm database has no table {table}"))?;
    reader.rows(root, &mut |row| each(Values::of(row).find_map(Value::blob)))
}

struct Reader<'a> {
    file: &'a [u8],
    page: usize,
    /// Bytes of a page that are in use.
    usable: usize,
    visited: Vec<bool>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a [u8]) -> Option<Self> {
        let page = match short(file, 16)? {
            1 => 65_536,
            n => usize::from(n),
        };
        let fits = file.starts_with(MAGIC) && page.is_power_of_two() && page >= 512;
        let usable = page.checked_sub(usize::from(*file.get(20)?)).filter(|u| fits && *u >= 480)?;
        Some(Self { file, page, usable, visited: vec![false; file.len() / page + 1] })
    }

    /// A page that was not visited yet; pages count from 1.
    fn visit(&mut self, number: u32) -> Option<&'a [u8]> {
        let index = (number as usize).checked_sub(1)?;
        let start = index.checked_mul(self.page)?;
        let page = self.file.get(start..start.checked_add(self.page)?)?;
        let visited = self.visited.get_mut(index)?;
        (!std::mem::replace(visited, true)).then_some(&page[..self.usable])
    }

    /// Walks a table's tree and hands over each row; an empty one where a part of it is missing.
    fn rows(&mut self, root: u32, each: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let mut todo = vec![root];
        while let Some(number) = todo.pop() {
            let broken = || format!("page {number} of the rpm database cannot be read");
            let page = self.visit(number).ok_or_else(broken)?;
            let start = if number == 1 { FILE_HEADER } else { 0 };
            let kind = *page.get(start).ok_or_else(broken)?;
            let count = usize::from(short(page, start + 3).ok_or_else(broken)?);
            let cells = match kind {
                LEAF => start + 8,
                INTERIOR => start + 12,
                _ => return Err(broken()),
            };
            let pointers = page.get(cells..cells + 2 * count).ok_or_else(broken)?;
            let cells = pointers.chunks_exact(2).map(|p| usize::from(u16::from_be_bytes([p[0], p[1]])));
            if kind == LEAF {
                // Cells do not overlap.
                let mut left = page.len();
                for cell in cells {
                    each(&self.row(page, cell, &mut left).unwrap_or_default());
                }
            } else {
                // Children in order: those of the cells, then the last.
                let last = long(page, start + 8).ok_or_else(broken)?;
                let children =
                    cells.map(|cell| long(page, cell)).collect::<Option<Vec<u32>>>().ok_or_else(broken)?;
                todo.push(last);
                todo.extend(children.into_iter().rev());
            }
        }
        Ok(())
    }

    /// The record of a leaf's cell: its length, the row's number, as much as lies in the page, the first overflow page.
    fn row(&mut self, page: &[u8], cell: usize, left: &mut usize) -> Option<Vec<u8>> {
        let mut rest = page.get(cell..)?;
        let length = usize::try_from(varint(&mut rest)?).ok()?;
        varint(&mut rest)?;
        let local = self.local(length);
        *left = left.checked_sub(local)?;
        let mut out = rest.get(..local)?.to_vec();
        let mut next = if local < length { long(rest, local)? } else { 0 };
        while out.len() < length {
            let page = self.visit(next)?;
            next = long(page, 0)?;
            let more = &page[4..];
            out.extend_from_slice(&more[..more.len().min(length - out.len())]);
        }
        Some(out)
    }

    /// How much of a record lies in the page itself.
    fn local(&self, length: usize) -> usize {
        let usable = self.usable;
        if length <= usable - 35 {
            return length;
        }
        let least = (usable - 12) * 32 / 255 - 23;
        let local = least + (length - least) % (usable - 4);
        if local <= usable - 35 { local } else { least }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value<'a> {
    Number(i64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
    /// NULL, a float.
    Other,
}

impl<'a> Value<'a> {
    fn blob(self) -> Option<&'a [u8]> {
        match self {
            Self::Blob(blob) => Some(blob),
            _ => None,
        }
    }
}

/// The values of a record: a header of their types, then the values.
struct Values<'a> {
    types: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Values<'a> {
    fn of(record: &'a [u8]) -> Self {
        let mut after = record;
        let header = varint(&mut after).and_then(|n| usize::try_from(n).ok());
        let before = record.len() - after.len();
        let types = header.and_then(|n| record.get(before..n)).unwrap_or_default();
        let rest = header.and_then(|n| record.get(n..)).unwrap_or_default();
        Self { types, rest }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let kind = varint(&mut self.types)?;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (kind - 12) / 2,
        };
        let (value, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(match kind {
            0 | 7 => Value::Other,
            8 | 9 => Value::Number(i64::from(kind == 9)),
            1..=6 => {
                let negative = value.first().is_some_and(|b| *b >= 0x80);
                let start = if negative { -1 } else { 0 };
                Value::Number(value.iter().fold(start, |n, b| (n << 8) | i64::from(*b)))
            }
            _ if kind % 2 == 0 => Value::Blob(value),
            _ => Value::Text(value),
        })
    }
}

/// One to nine bytes, seven bits each; the ninth counts whole.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut out = 0u64;
    for at in 0..9 {
        let byte = *bytes.get(at)?;
        if at == 8 {
            out = (out << 8) | u64::from(byte);
        } else {
            out = (out << 7) | u64::from(byte & 0x7f);
        }
        if at == 8 || byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(out);
        }
    }
    None
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_be_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_be_bytes)
}
