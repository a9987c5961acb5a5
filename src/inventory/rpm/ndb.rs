//! ndb, rpm's own container: pages of slots, each of which leads to a blob. Numbers are little-endian.

const HEADER: &[u8] = b"RpmP";
const SLOT: &[u8] = b"Slot";
const BLOB: &[u8] = b"BlbS";
const PAGE: usize = 4096;
/// Slots, and the blocks that blobs are counted in, have the same size; the header takes the place of two slots.
const BLOCK: usize = 16;
const FIRST_SLOT: usize = 2 * BLOCK;

/// Hands over each blob; `None` for one that is not where its slot says.
pub fn blobs(file: &[u8], each: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), String> {
    if !file.starts_with(HEADER) || number(file, 4) != Some(0) {
        return Err("rpm database of an unknown form (not ndb) is not read".to_owned());
    }
    let pages = number(file, 12).unwrap_or(0) as usize;
    let end = pages.checked_mul(PAGE).filter(|end| *end >= FIRST_SLOT);
    let slots = end.and_then(|end| file.get(FIRST_SLOT..end)).ok_or("the rpm database is cut off")?;
    // Blobs do not overlap.
    let mut left = file.len();
    for slot in slots.chunks_exact(BLOCK) {
        let place = number(slot, 8).unwrap_or(0) as usize;
        if !slot.starts_with(SLOT) || place == 0 {
            continue;
        }
        let blocks = number(slot, 12).unwrap_or(0) as usize;
        let start = place.saturating_mul(BLOCK);
        let found = file.get(start..start.saturating_add(blocks.saturating_mul(BLOCK)));
        let found = found.and_then(|blocks| blob(blocks, &slot[4..8])).filter(|blob| blob.len() <= left);
        left -= found.map_or(0, <[u8]>::len);
        each(found);
    }
    Ok(())
}

/// The blob in its blocks: magic, number of the package, time, length.
fn blob<'a>(blocks: &'a [u8], package: &[u8]) -> Option<&'a [u8]> {
    let length = number(blocks, 12)? as usize;
    let fits = blocks.starts_with(BLOB) && &blocks[4..8] == package;
    blocks.get(BLOCK..)?.get(..length).filter(|_| fits)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}
