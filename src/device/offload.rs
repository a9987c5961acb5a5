//! LLVM's OffloadBinary: images with strings that say what they are for. Objects have them for OpenMP, OpenACC, HIP and
//! SYCL, linked programs for OpenMP (layout: llvm/Object/OffloadBinary.h).

use std::io;

use super::bundle::{self, Place};
use super::sink::Sink;
use super::{ccob, fatbin, image, target};
use crate::model::{Arch, Container, Item};
use crate::stream::Body;

pub(super) const MAGIC: [u8; 4] = [0x10, 0xff, 0x10, 0xad];

/// Header of versions 1 and 2; version 3 has one number more.
const HEADER: usize = 32;
const ENTRY: usize = 40;

const MAX_ENTRIES: u64 = 4096;
const MAX_STRINGS: u64 = 64;
const MAX_STRING: usize = 1024;

/// Entries and strings stand before the images, within so many bytes.
const MAX_FRONT: usize = 1 << 20;

/// One image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Image {
    offset: u64,
    size: u64,
    arch: Arch,
}

/// The front of a binary, as far as the bytes reach.
enum Front {
    Whole {
        images: Vec<Image>,
        size: u64,
    },
    /// Version 3 with compressed images.
    Compressed {
        size: u64,
    },
    Needs(usize),
    Bad(String),
}

fn front(bytes: &[u8]) -> Front {
    match parse(bytes) {
        Ok(front) => front,
        Err(Stop::Needs(least)) if least <= MAX_FRONT as u64 => Front::Needs(least as usize),
        Err(Stop::Needs(_)) => Front::Bad("OffloadBinary whose entries are not at its front".to_owned()),
        Err(Stop::Bad(why)) => Front::Bad(why),
    }
}

enum Stop {
    Needs(u64),
    Bad(String),
}

fn number(bytes: &[u8], at: u64, size: u64) -> Result<u64, Stop> {
    let end =
        at.checked_add(size).ok_or_else(|| Stop::Bad("OffloadBinary with an impossible offset".to_owned()))?;
    let part = bytes.get(at.min(usize::MAX as u64) as usize..end as usize).ok_or(Stop::Needs(end))?;
    Ok(part.iter().rev().fold(0, |value, b| value << 8 | u64::from(*b)))
}

fn parse(bytes: &[u8]) -> Result<Front, Stop> {
    let version = number(bytes, 4, 4)?;
    let (size, entries) = (number(bytes, 8, 8)?, number(bytes, 16, 8)?);
    let (count, header) = match version {
        1 => (1, HEADER),
        2 => (number(bytes, 24, 8)?, HEADER),
        3 => (number(bytes, 24, 8)?, HEADER + 8),
        other => return Err(Stop::Bad(format!("OffloadBinary of unknown version {other}"))),
    };
    if size < (header + ENTRY) as u64 || entries < header as u64 || entries >= size {
        return Err(Stop::Bad("OffloadBinary whose sizes are impossible".to_owned()));
    }
    if !(1..=MAX_ENTRIES).contains(&count) {
        return Err(Stop::Bad(format!("OffloadBinary of {count} entries")));
    }
    if version == 3 && number(bytes, HEADER as u64, 8)? != 0 {
        return Ok(Front::Compressed { size });
    }
    let mut images = Vec::new();
    for index in 0..count {
        let at = entries.saturating_add(index * ENTRY as u64);
        let field = |n: u64| number(bytes, at.saturating_add(8 * n), 8);
        let (strings, string_count, offset, image_size) = (field(1)?, field(2)?, field(3)?, field(4)?);
        if string_count > MAX_STRINGS {
            return Err(Stop::Bad(format!("OffloadBinary entry of {string_count} strings")));
        }
        let (mut triple, mut arch) = (String::new(), String::new());
        let pair = if version == 1 { 16 } else { 24 };
        for i in 0..string_count {
            let at = strings.saturating_add(i * pair);
            let (key, value) = (number(bytes, at, 8)?, number(bytes, at.saturating_add(8), 8)?);
            match text(bytes, key)?.as_str() {
                "triple" => triple = text(bytes, value)?,
                "arch" => arch = text(bytes, value)?,
                _ => {}
            }
        }
        let machine = triple.split('-').next().unwrap_or_default();
        images.push(Image { offset, size: image_size, arch: target::of_names(machine, &arch) });
    }
    Ok(Front::Whole { images, size })
}

/// The string that begins at an offset and ends with a zero.
fn text(bytes: &[u8], at: u64) -> Result<String, Stop> {
    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).ok_or(Stop::Needs(at.saturating_add(1)))?;
    let look = &rest[..rest.len().min(MAX_STRING)];
    match memchr::memchr(0, look) {
        Some(end) => Ok(String::from_utf8_lossy(&look[..end]).into_owned()),
        None if look.len() == MAX_STRING => Err(Stop::Bad("OffloadBinary with an endless string".to_owned())),
        None => Err(Stop::Needs(bytes.len() as u64 + 1)),
    }
}

/// Reads the binary at the current position and moves past it; or tells why there is none, and does not move.
pub(super) fn read(sink: &mut Sink, body: &mut dyn Body) -> io::Result<Result<(), String>> {
    let start = body.position();
    let mut ask = HEADER + ENTRY;
    let (mut images, size) = loop {
        let window = body.window(ask)?;
        let ended = window.len() < ask;
        match front(window) {
            Front::Whole { images, size } => break (images, size),
            Front::Compressed { size } => {
                sink.damage(start, "OffloadBinary with compressed images is not understood");
                let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
                body.skip(if size <= left { size } else { HEADER as u64 })?;
                return Ok(Ok(()));
            }
            Front::Bad(why) => return Ok(Err(why)),
            Front::Needs(_) if ended => return Ok(Err("OffloadBinary that is cut off by the end".to_owned())),
            Front::Needs(least) => ask = least.max(ask.saturating_mul(2)).min(MAX_FRONT),
        }
    };
    let left = body.len().map_or(u64::MAX, |n| n.saturating_sub(start));
    if size > left {
        sink.damage(start, format!("OffloadBinary of {size} bytes runs past the end ({left} bytes left)"));
    }
    images.sort_by_key(|i| i.offset);
    let mut found: Vec<(Item, u64)> = Vec::new();
    for image in images.iter().filter(|i| i.size > 0) {
        let at = start.saturating_add(image.offset);
        let within = image.offset.checked_add(image.size).is_some_and(|end| end <= size.min(left));
        if !within || at < body.position() {
            let what = if within { "lies within another" } else { "runs past its end" };
            sink.damage(start, format!("OffloadBinary image for {} (offset {}) {what}", image.arch, image.offset));
            found.push((image::by_name(image.arch), 0));
            continue;
        }
        body.skip(at - body.position())?;
        let window = body.window(image::LOOK)?;
        let head = window[..window.len().min(image::LOOK).min(image.size as usize)].to_vec();
        if nested(sink, body, &head)? {
            continue;
        }
        let (item, problem) = image::judge(image.arch, &head);
        if let Some(trouble) = problem {
            trouble.tell(sink, at, "OffloadBinary image");
        }
        found.push((item, image.size));
    }
    sink.log.empty += u64::from(found.is_empty());
    sink.add(Container::OffloadBinary, start, &mut found);
    let end = if size <= left { size } else { HEADER as u64 };
    body.skip(start.saturating_add(end).saturating_sub(body.position()))?;
    Ok(Ok(()))
}

/// Reads an image that is a container of its own.
fn nested(sink: &mut Sink, body: &mut dyn Body, head: &[u8]) -> io::Result<bool> {
    let at = body.position();
    let told = if head.starts_with(bundle::MAGIC) {
        bundle::read(sink, body, &Place::PLAIN)?
    } else if ccob::is_start(head) {
        ccob::read(sink, body, None)?
    } else if head.starts_with(&fatbin::MAGIC) {
        return fatbin::read(sink, body, false);
    } else {
        return Ok(false);
    };
    if let Err(why) = told {
        sink.damage(at, why);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::sink::Options;
    use super::super::testing::{bundle, code_object};
    use super::*;
    use crate::model::Form;
    use crate::stream::Stream;

    /// A binary of images of (triple, arch, bytes).
    fn binary(version: u32, images: &[(&str, &str, Vec<u8>)]) -> Vec<u8> {
        let header = if version == 3 { 40 } else { 32 };
        let pair = if version == 1 { 16 } else { 24 };
        let strings_at = header + ENTRY * images.len();
        let text_at = strings_at + images.len() * 2 * pair;
        let (mut pairs, mut text, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (triple, arch, _) in images {
            for (key, value) in [("triple", triple), ("arch", arch)] {
                for part in [key, value] {
                    pairs.extend(((text_at + text.len()) as u64).to_le_bytes());
                    text.extend(part.as_bytes());
                    text.push(0);
                }
                if version > 1 {
                    pairs.extend((value.len() as u64).to_le_bytes());
                }
            }
        }
        let mut at = (text_at + text.len()).next_multiple_of(8);
        for (_, _, bytes) in images {
            places.push(at);
            at = (at + bytes.len()).next_multiple_of(8);
        }
        let mut out = MAGIC.to_vec();
        out.extend(version.to_le_bytes());
        let third = if version == 1 { ENTRY } else { images.len() };
        for n in [at, header, third, 0].into_iter().take(header / 8 - 1) {
            out.extend((n as u64).to_le_bytes());
        }
        for (i, (_, _, bytes)) in images.iter().enumerate() {
            out.extend([1, 0, 1, 0, 0, 0, 0, 0]);
            for n in [strings_at + i * 2 * pair, 2, places[i], bytes.len()] {
                out.extend((n as u64).to_le_bytes());
            }
        }
        out.extend(pairs);
        out.extend(text);
        for ((_, _, bytes), at) in images.iter().zip(places) {
            out.resize(at, 0);
            out.extend(bytes);
        }
        out.resize(at, 0);
        out
    }

    fn told(bytes: &[u8]) -> (Vec<(String, Form)>, Vec<String>, u64) {
        let mut sink = Sink::new(Options::default());
        let mut body = Stream::new(bytes, Some(bytes.len() as u64));
        if let Err(why) = read(&mut sink, &mut body).unwrap() {
            return (Vec::new(), vec![why], body.position());
        }
        let modules = sink.log.modules(|_| (None, false));
        let items = modules.iter().flat_map(|m| &m.items).map(|i| (i.item.arch.to_string(), i.item.form)).collect();
        (items, sink.gaps.into_iter().map(|g| g.why).collect(), body.position())
    }

    #[test]
    fn all_versions() {
        let images = [
            ("amdgcn-amd-amdhsa", "gfx942", code_object(6, 0x54c)),
            ("amdgcn-amd-amdhsa", "gfx90a", b"BC\xc0\xde....".to_vec()),
            ("nvptx64-nvidia-cuda", "sm_70", b".version 7.0\n.target sm_70\n".to_vec()),
        ];
        for version in [1, 2, 3] {
            let images = if version == 1 { &images[..1] } else { &images };
            let bytes = binary(version, images);
            let (items, gaps, at) = told(&[&bytes[..], &[0; 50]].concat());
            assert_eq!((gaps, at), (Vec::new(), bytes.len() as u64), "{version}");
            assert_eq!(items.len(), images.len());
            assert!(items.contains(&("gfx942".into(), Form::CodeObject)), "{items:?}");
            for n in 0..bytes.len() {
                assert!(!told(&bytes[..n]).1.is_empty(), "{n}");
            }
        }
    }

    #[test]
    fn containers_within_and_what_is_not_understood() {
        let inner = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx942", &code_object(6, 0x54c))], 64);
        let (items, gaps, _) = told(&binary(2, &[("amdgcn-amd-amdhsa", "", inner)]));
        assert_eq!((items, gaps), (vec![("gfx942".into(), Form::CodeObject)], vec![]));
        let mut compressed = binary(3, &[("amdgcn-amd-amdhsa", "gfx942", code_object(6, 0x54c))]);
        compressed[32] = 9;
        assert!(told(&compressed).1[0].contains("compressed"));
        compressed[4] = 4;
        assert!(told(&compressed).1[0].contains("version 4"));
    }
}
