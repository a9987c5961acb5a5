use std::io;

use super::*;
use crate::stream::{Plain, Stream};

const WHEEL: &[u8] = include_bytes!("../../../testdata/zip/python-zipfile.whl");
const PYTHON_PIPE: &[u8] = include_bytes!("../../../testdata/zip/python-pipe.zip");
const PYTHON_PIPE_STORED: &[u8] = include_bytes!("../../../testdata/zip/python-pipe-stored.zip");
const LZMA: &[u8] = include_bytes!("../../../testdata/zip/python-lzma.zip");
const INFOZIP: &[u8] = include_bytes!("../../../testdata/zip/infozip.zip");
const INFOZIP_PIPE: &[u8] = include_bytes!("../../../testdata/zip/infozip-pipe.zip");
const INFOZIP_PIPE_64: &[u8] = include_bytes!("../../../testdata/zip/infozip-pipe-zip64.zip");
const ENCRYPTED: &[u8] = include_bytes!("../../../testdata/zip/infozip-encrypted.zip");
const PREFIXED: &[u8] = include_bytes!("../../../testdata/zip/self-extracting.zip");
const JAR: &[u8] = include_bytes!("../../../testdata/zip/jdk.jar");
const ALL: [&[u8]; 10] = [
    WHEEL,
    PYTHON_PIPE,
    PYTHON_PIPE_STORED,
    LZMA,
    INFOZIP,
    INFOZIP_PIPE,
    INFOZIP_PIPE_64,
    ENCRYPTED,
    PREFIXED,
    JAR,
];

type Members = Vec<(String, Vec<u8>)>;

/// Reads an archive; a member that fails is left out, as a careful visitor would.
fn read_with(bytes: &[u8], limits: &ZipLimits) -> (Members, Result<ZipSummary, ZipError>) {
    let mut members = Members::new();
    let mut body = Stream::new(Plain(bytes), None);
    let result = walk(&mut body, limits, &mut |path, _, member| {
        if let Ok(Some(content)) = member.read_all(1 << 20) {
            members.push((path.to_string(), content));
        }
        Ok(())
    });
    (members, result)
}

fn read(bytes: &[u8]) -> (Members, Result<ZipSummary, ZipError>) {
    read_with(bytes, &ZipLimits::default())
}

fn library() -> Vec<u8> {
    let mut out = b"\x7fELF".to_vec();
    for _ in 0..8 {
        out.extend(0..=255u8);
    }
    out
}

#[test]
fn archives_of_every_writer_read_alike() {
    for (name, bytes) in [
        ("wheel", WHEEL),
        ("python pipe", PYTHON_PIPE),
        ("infozip", INFOZIP),
        ("infozip pipe", INFOZIP_PIPE),
        ("infozip pipe zip64", INFOZIP_PIPE_64),
        ("prefixed", PREFIXED),
        ("jar", JAR),
    ] {
        let (mut members, summary) = read(bytes);
        let summary = summary.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(summary.problems, [], "{name}");
        members.retain(|m| !m.0.starts_with("META-INF"));
        members.sort();
        let names: Vec<&str> = members.iter().map(|m| m.0.as_str()).collect();
        assert_eq!(names, ["pkg/__init__.py", "pkg/empty.txt", "pkg/lib/libdemo.so.1"], "{name}");
        assert_eq!(members[0].1, b"import os\n".repeat(40), "{name}");
        assert!(members[1].1.is_empty(), "{name}");
        assert_eq!(members[2].1, library(), "{name}");
    }
}

#[test]
fn what_the_visitor_leaves_is_drained_and_verified() {
    let mut flipped = WHEEL.to_vec();
    // Within the stored library, which starts behind its header.
    flipped[400] ^= 1;
    for (bytes, problems) in [(WHEEL, 0), (&flipped[..], 2)] {
        let mut body = Stream::new(Plain(bytes), None);
        let summary = walk(&mut body, &ZipLimits::default(), &mut |_, _, _| Ok(())).unwrap();
        assert_eq!(summary.problems.len(), problems, "{:?}", summary.problems);
        assert_eq!(summary.entries, 4);
        if let Some(first) = summary.problems.first() {
            assert!(first.what.starts_with("CRC mismatch"), "{first:?}");
            assert_eq!(first.member, Some(ImagePath::new("pkg/lib/libdemo.so.1")));
            assert_eq!((first.offset, first.effect), (96, GapEffect::File));
        }
    }
}

#[test]
fn members_skip_and_tell_their_position() {
    let mut body = Stream::new(Plain(INFOZIP_PIPE), None);
    let mut seen = 0;
    walk(&mut body, &ZipLimits::default(), &mut |path, _, member| {
        if path.to_string().ends_with(".1") {
            assert_eq!(member.skip(4 + 256)?, 260);
            assert_eq!(member.window(4)?[..4], [0, 1, 2, 3]);
            assert_eq!(member.position(), 260);
            seen += 1;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn unreadable_members_are_told_and_passed() {
    let (members, summary) = read(ENCRYPTED);
    let summary = summary.unwrap();
    assert_eq!(members.len(), 0);
    assert_eq!(summary.problems.len(), 3, "{:?}", summary.problems);
    assert!(summary.problems.iter().all(|p| p.what == "not read: encrypted"));

    let (members, summary) = read(LZMA);
    assert_eq!(members, [("pkg/lib/libdemo.so.1".to_owned(), library())]);
    let problems = summary.unwrap().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].what, "not read: packed by method 14, which is not supported");
}

#[test]
fn a_stored_member_of_unknown_size_stops_the_walk() {
    let (members, result) = read(PYTHON_PIPE_STORED);
    // The empty one is clear.
    assert_eq!(members, [("pkg/empty.txt".to_owned(), vec![])]);
    let error = result.unwrap_err();
    assert!(error.what.contains("stored member"), "{error}");
    assert_eq!(error.before.entries, 2);
    assert!(error.offset > 59);
}

#[test]
fn a_member_that_the_directory_hides_is_told() {
    // Drop the library's central header: the second of the pipe's three.
    let starts: Vec<usize> = memchr::memmem::find_iter(PYTHON_PIPE, b"PK\x01\x02").collect();
    let mut bytes = PYTHON_PIPE[..starts[1]].to_vec();
    bytes.extend_from_slice(&PYTHON_PIPE[starts[2]..]);
    let end = memchr::memmem::rfind(&bytes, b"PK\x05\x06").unwrap();
    bytes[end + 8] = 2;
    bytes[end + 10] = 2;
    let (members, summary) = read(&bytes);
    assert_eq!(members.len(), 3);
    let problems = summary.unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].what, "a member that the central directory does not list");
    assert_eq!(problems[0].offset, 78);
}

#[test]
fn names_and_counts_must_agree() {
    let mut bytes = INFOZIP.to_vec();
    let central = memchr::memmem::rfind(&bytes, b"pkg/empty.txt").unwrap();
    bytes[central] = b'q';
    let end = memchr::memmem::rfind(&bytes, b"PK\x05\x06").unwrap();
    bytes[end + 10] = 9;
    let problems = read(&bytes).1.unwrap().problems;
    let what: Vec<&str> = problems.iter().map(|p| p.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "its local header has another name than the central directory",
            "the archive says it has 9 members, its directory lists 5"
        ]
    );
}

#[test]
fn archives_behind_the_archive_are_told() {
    let mut twice = INFOZIP.to_vec();
    twice.extend_from_slice(WHEEL);
    let problems = read(&twice).1.unwrap().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].offset, INFOZIP.len() as u64);
    assert!(problems[0].what.contains("behind the end"));
}

#[test]
fn limits_stop_the_walk() {
    let stop = |bytes: &[u8], limits: ZipLimits| read_with(bytes, &limits).1.unwrap_err().what;
    let limits = ZipLimits::default;
    assert_eq!(stop(WHEEL, ZipLimits { entries: 2, ..limits() }), "more than 2 members");
    assert!(stop(WHEEL, ZipLimits { unpacked: 1000, ..limits() }).contains("more than its limit"));
    let ratio = ZipLimits { ratio: 3, ratio_from: 100, ..limits() };
    assert_eq!(stop(INFOZIP_PIPE, ratio), "a member unpacks to more than 3 times its size");
    let (members, summary) = read_with(INFOZIP, &ZipLimits { name: 14, ..limits() });
    assert_eq!(members.len(), 1);
    assert_eq!(summary.unwrap().problems.len(), 2);
}

#[test]
fn an_error_of_the_visitor_stops_the_walk() {
    let mut body = Stream::new(Plain(INFOZIP), None);
    let refuse = &mut |_, _, _: &mut dyn Body| Err(io::Error::other("no room"));
    let error = walk(&mut body, &ZipLimits::default(), refuse).unwrap_err();
    assert_eq!(error.what, "no room");
}

#[test]
fn names_are_clamped() {
    let mut bytes = INFOZIP.to_vec();
    for at in memchr::memmem::find_iter(INFOZIP, b"pkg/empty.txt") {
        bytes[at..at + 13].copy_from_slice(b"../../etc/pwd");
    }
    let (members, summary) = read(&bytes);
    assert!(members.iter().any(|m| m.0 == "etc/pwd"));
    let problems = summary.unwrap().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].what, "its name climbs out of the archive");
}

#[test]
fn no_archive_and_cut_archives_are_located_errors() {
    assert_eq!(read(b"").1.unwrap_err().what, "not a zip archive");
    assert_eq!(read(b"not a zip at all").1.unwrap_err().offset, 0);
    assert_eq!(read(b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").1.unwrap().entries, 0);
    for bytes in ALL {
        for length in 0..bytes.len() {
            if let Err(e) = read(&bytes[..length]).1 {
                assert!(e.offset <= length as u64, "{e} of {length}");
            } else {
                panic!("cut at {length} of {} unnoticed", bytes.len());
            }
        }
    }
}

#[test]
fn no_flipped_byte_panics_or_changes_content_unnoticed() {
    for bytes in ALL {
        let (sound, clean) = read(bytes);
        let clean = clean.map_or(0, |s| s.problems.len());
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= flip;
                let (members, result) = read(&damaged);
                if let Ok(summary) = result
                    && summary.problems.len() <= clean
                {
                    assert_eq!(members, sound, "a flip of 0x{flip:02x} at {at} went unnoticed");
                }
            }
        }
    }
}
