//! Dialects of tar, what is refused, sparse files, and damage of every kind.

use super::*;
use crate::stream::Stream;

/// What the walk has shown of an entry.
#[derive(Debug, PartialEq)]
struct Seen {
    path: String,
    kind: EntryKind,
    size: u64,
    data: Vec<u8>,
    notes: usize,
}

fn seen(tar: &[u8]) -> Result<Vec<Seen>, TarError> {
    let mut out = Vec::new();
    let mut body = Stream::new(tar, None);
    walk(&mut body, 10_000, &mut |entry, data| {
        let path = entry.path.to_string();
        let data = data.read_all(1 << 24)?.expect("a test's files are small");
        out.push(Seen { path, kind: entry.kind, size: entry.size, data, notes: entry.notes.len() });
        Ok(())
    })?;
    Ok(out)
}

/// `PATH KIND SIZE` of each entry.
fn listed(tar: &[u8]) -> Vec<String> {
    let kind = |kind: &EntryKind| match kind {
        EntryKind::Symlink(to) => format!("symlink>{}", String::from_utf8_lossy(to)),
        EntryKind::Hardlink(to) => format!("hardlink>{to}"),
        other => format!("{other:?}").to_lowercase(),
    };
    seen(tar).unwrap().iter().map(|s| format!("{} {} {}", s.path, kind(&s.kind), s.size)).collect()
}

fn refusal(tar: &[u8]) -> String {
    seen(tar).unwrap_err().to_string()
}

/// A tar that is written header by header.
#[derive(Clone, Default)]
struct Made(Vec<u8>);

impl Made {
    fn header(name: &[u8], kind: u8, size: &[u8], edit: impl FnOnce(&mut [u8; 512])) -> [u8; 512] {
        let mut h = [0u8; 512];
        h[..name.len()].copy_from_slice(name);
        h[100..108].copy_from_slice(b"0000755\0");
        h[108..116].copy_from_slice(b"0000000\0");
        h[116..124].copy_from_slice(b"0000000\0");
        h[124..124 + size.len()].copy_from_slice(size);
        h[136..148].copy_from_slice(b"00000000000\0");
        h[156] = kind;
        h[257..265].copy_from_slice(b"ustar\x0000");
        edit(&mut h);
        h[148..156].fill(b' ');
        let sum: u32 = h.iter().map(|&b| u32::from(b)).sum();
        h[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        h
    }

    fn entry(self, name: &str, kind: u8, data: &[u8]) -> Self {
        self.edited(name, kind, data, |_| {})
    }

    fn edited(mut self, name: &str, kind: u8, data: &[u8], edit: impl FnOnce(&mut [u8; 512])) -> Self {
        let size = format!("{:011o}\0", data.len());
        self.0.extend(Self::header(name.as_bytes(), kind, size.as_bytes(), edit));
        self.padded(data)
    }

    /// With a size field of one's own.
    fn sized(mut self, name: &str, kind: u8, size: &[u8], data: &[u8]) -> Self {
        self.0.extend(Self::header(name.as_bytes(), kind, size, |_| {}));
        self.padded(data)
    }

    fn padded(mut self, data: &[u8]) -> Self {
        self.0.extend(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn link(self, name: &str, kind: u8, to: &str) -> Self {
        self.edited(name, kind, b"", |h| h[157..157 + to.len()].copy_from_slice(to.as_bytes()))
    }

    fn pax(self, records: &[(&str, &str)]) -> Self {
        self.entry("PaxHeaders/x", b'x', &pax(records))
    }

    fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

fn made() -> Made {
    Made::default()
}

fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let length = (rest + 1..).find(|n| n.to_string().len() + rest == *n).unwrap();
        out.extend(format!("{length} {key}={value}\n").bytes());
    }
    out
}

#[test]
fn every_kind_of_entry_with_its_path_from_the_root() {
    let tar = made()
        .entry("./usr/", b'5', b"")
        .entry("/usr//a.so", b'0', b"abc")
        .entry("old.so", 0, b"x")
        .entry("contiguous", b'7', b"xy")
        .entry("unknown", b'Z', b"xyz")
        .entry("old-dir/", b'0', b"")
        .link("usr/l", b'2', "../a b")
        .link("usr/h", b'1', "./usr/a.so")
        .entry("dev/null", b'3', b"")
        .entry("fifo", b'6', b"")
        .end();
    let want = [
        "usr dir 0",
        "usr/a.so file 3",
        "old.so file 1",
        "contiguous file 2",
        "unknown file 3",
        "old-dir dir 0",
        "usr/l symlink>../a b 0",
        "usr/h hardlink>usr/a.so 0",
        "dev/null special 0",
        "fifo special 0",
    ];
    assert_eq!(listed(&tar), want);
    assert_eq!(seen(&tar).unwrap()[1].data, b"abc");
}

#[test]
fn what_the_tar_crate_writes_comes_back() {
    let long = format!("n/{}/lib.so", "d".repeat(300));
    let mut builder = tar::Builder::new(Vec::new());
    for path in ["short.so", &long] {
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        builder.append_data(&mut header, path, &b"data"[..]).unwrap();
    }
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "link", &long).unwrap();
    let got = listed(&builder.into_inner().unwrap());
    assert_eq!(got, ["short.so file 4".to_owned(), format!("{long} file 4"), format!("link symlink>{long} 0")]);
}

#[test]
fn names_of_every_dialect() {
    let long = "p/".repeat(120) + "x";
    let pax = made().pax(&[("path", &long), ("linkpath", "to/here")]).link("short", b'2', "cut").end();
    assert_eq!(listed(&pax), [format!("{long} symlink>to/here 0")]);
    let gnu = made().entry("././@LongLink", b'L', format!("{long}\0").as_bytes()).entry("short", b'0', b"1").end();
    assert_eq!(listed(&gnu), [format!("{long} file 1")]);
    let both = made().entry("@", b'K', b"far/away\0").entry("@", b'L', b"a/name\0").link("s", b'2', "t").end();
    assert_eq!(listed(&both), ["a/name symlink>far/away 0"]);
    let ustar = made().edited("tail.so", b'0', b"1", |h| h[345..349].copy_from_slice(b"head")).end();
    assert_eq!(listed(&ustar), ["head/tail.so file 1"]);
    let v7 = made().edited("old.so", 0, b"1", |h| h[257..].fill(0)).end();
    assert_eq!(listed(&v7), ["old.so file 1"]);
    let raw = Made(Vec::new()).0;
    let mut raw = raw;
    raw.extend(Made::header(b"bad/\xff\xfe.so", b'0', b"00000000000\0", |_| {}));
    assert_eq!(listed(&raw), ["bad/\\xff\\xfe.so file 0"]);
}

#[test]
fn extensions_hold_for_one_entry_only() {
    let tar = made().pax(&[("path", "long")]).entry("a", b'0', b"").entry("b", b'0', b"").end();
    assert_eq!(listed(&tar), ["long file 0", "b file 0"]);
    let global =
        made().entry("g", b'g', &pax(&[("path", "everywhere"), ("size", "9")])).entry("a", b'0', b"1").end();
    assert_eq!(listed(&global), ["a file 1"], "a global record renames nothing");
}

#[test]
fn sizes_of_every_dialect() {
    let mut base256 = [0u8; 12];
    (base256[0], base256[11]) = (0x80, 3);
    assert_eq!(listed(&made().sized("a", b'0', &base256, b"abc").end()), ["a file 3"]);
    assert_eq!(listed(&made().sized("a", b'0', b"          3 ", b"abc").end()), ["a file 3"]);
    let paxed = made().pax(&[("size", "3")]).sized("a", b'0', b"00000000000\0", b"abc").entry("b", b'0', b"").end();
    assert_eq!(listed(&paxed), ["a file 3", "b file 0"]);
    // A link carries no data, whatever its size says.
    let link = made().sized("l", b'2', b"00000001000\0", b"").entry("b", b'0', b"").end();
    assert_eq!(listed(&link), ["l symlink> 0", "b file 0"]);
}

#[test]
fn sizes_that_no_file_has_are_refused() {
    assert!(refusal(&made().sized("a", b'0', &[0xff; 12], b"").end()).contains("negative"));
    assert!(refusal(&made().sized("a", b'0', b"12x\0", b"").end()).contains("not a number"));
    let mut huge = [0u8; 12];
    (huge[0], huge[4]) = (0x80, 0x40);
    assert!(refusal(&made().sized("a", b'0', &huge, b"").end()).contains("bytes are missing"));
    huge[2] = 1;
    assert!(refusal(&made().sized("a", b'0', &huge, b"").end()).contains("not a number"));
    for size in ["18446744073709551615", "9223372036854775807", "18446744073709551616", "-1", "many"] {
        let tar = made().pax(&[("size", size)]).entry("a", b'0', b"").end();
        assert!(matches!(seen(&tar), Err(TarError::Header { .. })), "{size}");
    }
}

#[test]
fn records_are_bounded() {
    let tar = made().sized("x", b'x', b"00100000000\0", b"").end();
    assert!(refusal(&tar).contains("over the limit"), "16 MiB of PAX header");
    let tar = made().sized("x", b'L', b"77777777777\0", b"").end();
    assert!(refusal(&tar).contains("GNU long name of 8589934591 bytes"));
    let cut = made().sized("x", b'x', b"00000002000\0", b"9 path=a\n").0;
    assert!(refusal(&cut).contains("cut off"));
    assert!(refusal(&made().entry("x", b'x', b"nonsense").end()).contains("PAX header"));
}

#[test]
fn markers_of_what_is_gone() {
    let tar = made()
        .entry("d/.wh.gone", b'0', b"")
        .entry("d/.wh..wh..opq", b'0', b"")
        .entry(".wh..wh..opq", b'0', b"")
        .entry("d/.wh..wh.plnk", b'0', b"")
        .entry(".wh.", b'0', b"")
        .entry(".wh..", b'0', b"")
        .entry(".wh...", b'0', b"")
        .end();
    let all = seen(&tar).unwrap();
    let kinds: Vec<_> = all.iter().map(|s| (s.path.as_str(), &s.kind, s.notes)).collect();
    assert_eq!(kinds[0], ("d/gone", &EntryKind::Whiteout, 0));
    assert_eq!(kinds[1], ("d", &EntryKind::Opaque, 0));
    assert_eq!(kinds[2], ("", &EntryKind::Opaque, 0));
    assert_eq!(kinds.len(), 7);
    assert!(kinds[3..].iter().all(|(_, kind, notes)| **kind == EntryKind::Ignored && *notes == 1), "{kinds:?}");
}

#[test]
fn paths_that_climb_are_clamped_and_told() {
    let tar = made().entry("../../etc/a", b'0', b"1").link("h", b'1', "../../etc/shadow").end();
    let all = seen(&tar).unwrap();
    assert_eq!((all[0].path.as_str(), all[0].notes), ("etc/a", 1));
    assert_eq!((&all[1].kind, all[1].notes), (&EntryKind::Hardlink(ImagePath::new("etc/shadow")), 1));
}

#[test]
fn where_a_tar_ends() {
    let whole = made().entry("a", b'0', b"1");
    assert_eq!(listed(&whole.0), ["a file 1"], "no end blocks");
    assert_eq!(listed(&whole.0[..513]), ["a file 1"], "nor the last padding");
    let mut behind = whole.clone().end();
    behind.extend(b"anything");
    assert_eq!(listed(&behind), ["a file 1"]);
    assert_eq!(listed(b""), [""; 0]);
    assert_eq!(listed(&[0; 1024]), [""; 0]);
    let mut single = whole.clone().padded(&[0; 512]).0;
    single.extend(made().entry("b", b'0', b"").0);
    assert!(refusal(&single).contains("zero block"), "what follows would be lost in silence");
    assert!(refusal(&whole.0[..300]).contains("cut off"));
    let Err(TarError::Truncated { at, path, missing }) = seen(&made().entry("big", b'0', &[7; 5000]).0[..3000])
    else {
        panic!("not truncated");
    };
    assert_eq!((at, path.to_string().as_str(), missing), (512, "big", 512 + 5000 - 3000));
}

#[test]
fn checksums_count() {
    let mut tar = made().entry("a", b'0', b"1").end();
    assert!(looks_like_tar(&tar) && looks_like_tar(&[0; 1024]));
    tar[0] ^= 1;
    assert!(!looks_like_tar(&tar) && !looks_like_tar(&tar[..511]) && !looks_like_tar(&[0; 512]));
    assert!(refusal(&tar).contains("checksum"));
    // Ancient tars summed signed bytes.
    let mut signed = Made::header(b"\xe4\xf6", b'0', b"00000000000\0", |_| {});
    let sum: i32 = signed[..148].iter().chain(&signed[156..]).map(|&b| i32::from(b as i8)).sum::<i32>() + 256;
    signed[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert_eq!(listed(&signed), ["\\xe4\\xf6 file 0"]);
}

#[test]
fn entries_are_counted() {
    let tar = (0..12).fold(made(), |m, i| m.entry(&i.to_string(), b'0', b"")).end();
    let walked = walk(&mut Stream::new(&tar[..], None), 10, &mut |_, _| Ok(()));
    assert!(matches!(walked, Err(TarError::TooManyEntries { limit: 10 })));
}

/// `one`, a hole, `two`, a hole to the end.
const SPARSE: (&[(u64, &str)], u64) = (&[(0, "one"), (5000, "two")], 9000);

fn expanded() -> Vec<u8> {
    let mut out = vec![0; SPARSE.1 as usize];
    for (at, text) in SPARSE.0 {
        out[*at as usize..*at as usize + text.len()].copy_from_slice(text.as_bytes());
    }
    out
}

fn octal(h: &mut [u8], at: usize, value: u64) {
    h[at..at + 12].copy_from_slice(format!("{value:011o}\0").as_bytes());
}

fn gnu_sparse(pieces: &[(u64, u64)], size: u64, data: &[u8]) -> Vec<u8> {
    let (first, rest) = pieces.split_at(pieces.len().min(4));
    let mut out = Made::header(b"s.so", b'S', format!("{:011o}\0", data.len()).as_bytes(), |h| {
        h[257..265].copy_from_slice(b"ustar  \0");
        for (i, (at, length)) in first.iter().enumerate() {
            octal(h, 386 + i * 24, *at);
            octal(h, 398 + i * 24, *length);
        }
        h[482] = u8::from(!rest.is_empty());
        octal(h, 483, size);
    })
    .to_vec();
    for (n, chunk) in rest.chunks(21).enumerate() {
        let mut block = [0u8; 512];
        for (i, (at, length)) in chunk.iter().enumerate() {
            octal(&mut block, i * 24, *at);
            octal(&mut block, i * 24 + 12, *length);
        }
        block[504] = u8::from((n + 1) * 21 < rest.len());
        out.extend(block);
    }
    Made(out).padded(data).entry("after", b'0', b"1").end()
}

fn sparse_samples() -> Vec<(&'static str, Vec<u8>)> {
    let data = b"onetwo";
    let size = ("GNU.sparse.size", "9000");
    let zero = [size, ("GNU.sparse.numblocks", "2"), ("GNU.sparse.offset", "0"), ("GNU.sparse.numbytes", "3")];
    let zero = [&zero[..], &[("GNU.sparse.offset", "5000"), ("GNU.sparse.numbytes", "3")]].concat();
    let name = ("GNU.sparse.name", "s.so");
    let mut map = b"2\n0\n3\n5000\n3\n".to_vec();
    map.resize(512, 0);
    map.extend(data);
    let ten = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), name, ("GNU.sparse.realsize", "9000")];
    let after = |m: Made| m.entry("after", b'0', b"1").end();
    vec![
        ("GNU", gnu_sparse(&[(0, 3), (5000, 3), (9000, 0)], 9000, data)),
        ("PAX 0.0", after(made().pax(&zero).entry("s.so", b'0', data))),
        (
            "PAX 0.1",
            after(made().pax(&[size, name, ("GNU.sparse.map", "0,3,5000,3")]).entry(
                "GNUSparseFile.0/s.so",
                b'0',
                data,
            )),
        ),
        ("PAX 1.0", after(made().pax(&ten).entry("GNUSparseFile.0/s.so", b'0', &map))),
    ]
}

#[test]
fn sparse_files_of_every_dialect_are_expanded() {
    for (dialect, tar) in sparse_samples() {
        let all = seen(&tar).unwrap_or_else(|e| panic!("{dialect}: {e}"));
        assert_eq!((all[0].path.as_str(), all[0].size), ("s.so", 9000), "{dialect}");
        assert!(all[0].data == expanded(), "{dialect}: other bytes");
        assert_eq!(all[1].path, "after", "{dialect}");
        // What nobody reads is skipped, also from the middle.
        for skip in [0, 2, 4000, 5001, 8999, 9000] {
            let mut paths = Vec::new();
            walk(&mut Stream::new(&tar[..], None), 9, &mut |entry, data| {
                if entry.path.as_bytes() == b"s.so" {
                    assert_eq!(data.skip(skip)?, skip);
                    assert_eq!(data.window(1)?.first(), expanded().get(skip as usize), "{dialect} {skip}");
                }
                paths.push(entry.path.to_string());
                Ok(())
            })
            .unwrap();
            assert_eq!(paths, ["s.so", "after"], "{dialect}");
        }
    }
}

#[test]
fn gnu_sparse_maps_go_on_in_more_blocks() {
    let pieces: Vec<(u64, u64)> = (0..60).map(|i| (i * 100, 1)).collect();
    let data: Vec<u8> = (1..=60).collect();
    let all = seen(&gnu_sparse(&pieces, 6000, &data)).unwrap();
    for (i, (at, _)) in pieces.iter().enumerate() {
        assert_eq!(all[0].data[*at as usize], i as u8 + 1);
    }
    assert_eq!((all[0].data.iter().filter(|&&b| b != 0).count(), all.len()), (60, 2));
}

#[test]
fn sparse_maps_that_lie_are_refused() {
    let refused = |pieces: &[(u64, u64)], size| refusal(&gnu_sparse(pieces, size, b"onetwo"));
    assert!(refused(&[(0, 3), (2, 3)], 9000).contains("overlap"));
    assert!(refused(&[(5000, 3), (0, 3)], 9000).contains("backwards"));
    assert!(refused(&[(0, 3), (5000, 3)], 5002).contains("behind the end"));
    assert!(refused(&[(0, 6)], 0o77777777777).contains("holes are over the limit"));
    assert!(refused(&[(0, 3), (5000, 9)], 9000).contains("ends early"), "more pieces than data");
    let map = |map: &str| {
        let tar =
            made().pax(&[("GNU.sparse.size", "9000"), ("GNU.sparse.map", map)]).entry("s", b'0', b"onetwo").end();
        refusal(&tar)
    };
    assert!(map("0,3,5000").contains("not a list of numbers"));
    assert!(map("0,x").contains("not a list of numbers"));
    assert!(map("18446744073709551615,3").contains("overflows"));
    let ten = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "9000")];
    let leading = |map: &[u8]| refusal(&made().pax(&ten).entry("s", b'0', map).end());
    assert!(leading(b"99999999\n0\n").contains("over the limit"));
    assert!(leading(b"no number here, not even a line\n").contains("not a list of numbers"));
    assert!(leading(b"2\n0\n3\n").contains("not a list of numbers"));
}

/// Samples for damage: one of everything.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let many = (0..20).fold(made(), |m, i| m.entry(&format!("d/{i}"), b'0', &vec![i; usize::from(i) * 70]));
    let plain = many.link("l", b'2', "d/1").link("h", b'1', "d/2").entry("d/.wh.x", b'0', b"").end();
    let long = "p/".repeat(120) + "x";
    let pax = made().pax(&[("path", &long), ("size", "700"), ("mtime", "1.5")]).entry("a", b'0', &[1; 700]).end();
    let gnu = made().entry("@", b'L', long.as_bytes()).entry("@", b'K', long.as_bytes()).link("a", b'2', "b").end();
    let mut all = sparse_samples();
    all.extend([("plain", plain), ("pax", pax), ("gnu", gnu)]);
    all
}

/// Numbers that look random and are the same each time.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// What was seen before the damage stops the walk; holes make a file's size unrelated to the tar's.
fn endure(tar: &[u8]) -> (usize, bool) {
    let mut count = 0;
    let walked = walk(&mut Stream::new(tar, None), 10_000, &mut |entry, data| {
        count += 1;
        assert!(!entry.path.components().any(|c| c == b".." || c == b"."), "{}", entry.path);
        match count % 3 {
            0 => drop(data.read_all(1 << 16)?),
            1 => drop(data.skip(entry.size / 2)?),
            _ => {}
        }
        Ok(())
    });
    assert!(count <= tar.len() / 512 + 1);
    (count, walked.is_ok())
}

#[test]
fn a_tar_cut_anywhere_never_gives_more_and_never_panics() {
    for (name, tar) in samples() {
        let whole = seen(&tar).unwrap();
        for cut in 0..tar.len() {
            // Only a cut between entries, or in what follows the last one, can look like an end.
            match seen(&tar[..cut]) {
                Ok(some) => assert!(some[..] == whole[..some.len()], "{name} cut at {cut}"),
                Err(_) => assert!(cut < tar.len() - 512, "{name} cut at {cut}: in the end blocks"),
            }
        }
    }
}

#[test]
fn a_tar_with_flipped_bytes_never_panics_or_grows() {
    for (name, tar) in samples() {
        let mut random = numbers(0x9e37_79b9_7f4a_7c15 ^ tar.len() as u64);
        for _ in 0..2000 {
            let mut hurt = tar.clone();
            for _ in 0..1 + random() % 4 {
                let at = random() as usize % hurt.len();
                hurt[at] = random() as u8;
                // Half of them keep their checksum, so that the damage gets past it.
                if random().is_multiple_of(2) {
                    mend(&mut hurt, at / 512 * 512);
                }
            }
            let (count, whole) = endure(&hurt);
            assert!(count <= tar.len() / 512, "{name}: {count} entries, whole: {whole}");
        }
    }
}

fn mend(tar: &mut [u8], at: usize) {
    let Some(header) = tar.get_mut(at..at + 512) else { return };
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}
