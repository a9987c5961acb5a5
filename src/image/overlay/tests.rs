//! The laws of layers, one test each, and the whole against a naive model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// `d PATH` directory, `f PATH CONTENT` file, `l PATH TARGET` symlink, `h PATH TARGET` hard link, `s PATH` device,
/// `w PATH` whiteout of PATH, `o PATH` opaque marker in PATH.
fn layer(lines: &[&str]) -> Vec<LayerEntry<String>> {
    let entry = |line: &&str| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (kind, path, rest) = (word(), word(), word());
        let change = match kind {
            "d" => Change::Dir,
            "f" => Change::File(rest.to_owned()),
            "l" => Change::Symlink(rest.as_bytes().to_vec()),
            "h" => Change::Hardlink(ImagePath::new(rest)),
            "s" => Change::Special,
            "w" => Change::Whiteout,
            "o" => Change::Opaque,
            _ => panic!("no such entry: {line}"),
        };
        LayerEntry { path: ImagePath::new(path), change }
    };
    lines.iter().map(entry).collect()
}

struct Merged {
    tree: Tree<String>,
    trouble: Vec<String>,
}

fn merge(layers: &[&[&str]]) -> Merged {
    let mut tree = Tree::new();
    let mut trouble = Vec::new();
    for (i, lines) in layers.iter().enumerate() {
        trouble.extend(tree.apply(i, layer(lines)).into_iter().map(|(path, why)| format!("{path}: {why}")));
    }
    Merged { tree, trouble }
}

/// `PATH=CONTENT@LAYER` of every file, without trouble.
fn files(layers: &[&[&str]]) -> String {
    let merged = merge(layers);
    assert!(merged.trouble.is_empty(), "{:?}", merged.trouble);
    listed(&merged.tree)
}

fn listed(tree: &Tree<String>) -> String {
    let mut all: Vec<String> = Vec::new();
    tree.each_file(|f| all.push(format!("{}={}@{}", f.path, f.file, f.layer)));
    all.join(" ")
}

#[test]
fn a_later_file_replaces_an_earlier_one() {
    assert_eq!(files(&[&["f a 1", "f b 2"], &["f a 3"]]), "a=3@1 b=2@0");
    assert_eq!(files(&[&["f a 1", "f a 2"]]), "a=2@0", "of the same layer, too");
}

#[test]
fn a_whiteout_hides_a_file_or_a_whole_directory_of_lower_layers() {
    assert_eq!(files(&[&["f d/a 1", "f d/b 2"], &["w d/a"]]), "d/b=2@0");
    assert_eq!(files(&[&["f d/a 1", "f d/e/b 2", "f c 3"], &["w d"]]), "c=3@0");
    assert_eq!(files(&[&["f a 1"], &["w a"], &["f a 2"]]), "a=2@2");
}

#[test]
fn a_whiteout_of_nothing_is_no_trouble() {
    assert_eq!(files(&[&["f a 1"], &["w b", "w a/b", "w x/y/z", "o x", "o a"]]), "a=1@0");
}

#[test]
fn a_whiteout_never_hides_its_own_layer() {
    for lines in [&["f a 2", "w a"], &["w a", "f a 2"]] {
        assert_eq!(files(&[&["f a 1"], lines]), "a=2@1");
    }
}

#[test]
fn an_opaque_marker_hides_lower_layers_only_wherever_it_stands() {
    let below: &[&str] = &["d d", "f d/a 1", "f d/e/b 1", "f c 1"];
    for lines in [&["d d", "o d", "f d/new 2"], &["d d", "f d/new 2", "o d"], &["f d/new 2", "o d", "d d"]] {
        assert_eq!(files(&[below, lines]), "c=1@0 d/new=2@1");
    }
    assert_eq!(files(&[below, &["o d"], &["f d/a 3"]]), "c=1@0 d/a=3@2");
    let root: &[&str] = &["f only 2", "o /"];
    assert_eq!(files(&[below, root]), "only=2@1");
}

#[test]
fn a_directory_entry_keeps_what_is_in_it() {
    assert_eq!(files(&[&["d d", "f d/a 1"], &["d d"]]), "d/a=1@0");
}

#[test]
fn whatever_replaces_a_directory_takes_its_contents_along() {
    assert_eq!(files(&[&["f d/a 1"], &["f d 2"]]), "d=2@1");
    assert_eq!(files(&[&["f d/a 1", "f e/b 1"], &["l d e"]]), "e/b=1@0");
    assert_eq!(files(&[&["f d/a 1"], &["s d"]]), "");
    assert_eq!(files(&[&["f d/a 1", "f x 2"], &["h d x"]]), "d=2@1 x=2@0");
}

#[test]
fn a_directory_replaces_a_file_or_a_link() {
    assert_eq!(files(&[&["f d 1"], &["d d", "f d/a 2"]]), "d/a=2@1");
    assert_eq!(files(&[&["f e/a 1", "l d e"], &["d d", "f d/b 2"]]), "d/b=2@1 e/a=1@0");
}

#[test]
fn a_file_in_the_way_gives_way() {
    assert_eq!(files(&[&["f d 1"], &["f d/a 2"]]), "d/a=2@1");
    assert_eq!(files(&[&["f d 1"], &["f d/a/b 2"]]), "d/a/b=2@1");
    assert_eq!(files(&[&["s d"], &["f d/a 2"]]), "d/a=2@1");
}

#[test]
fn hard_links_within_a_layer_and_across_layers() {
    assert_eq!(files(&[&["f a 1", "h b a"]]), "a=1@0 b=1@0");
    assert_eq!(files(&[&["h b a", "f a 1"]]), "a=1@0 b=1@0", "before its target");
    assert_eq!(files(&[&["f a 1"], &["h b a"]]), "a=1@0 b=1@1");
    assert_eq!(files(&[&["f a 1"], &["h b a"], &["f a 2"]]), "a=2@2 b=1@1", "a copy of what was there");
    assert_eq!(files(&[&["f a 1"], &["h b a", "w a"]]), "b=1@1", "of a file that the layer removes");
    assert_eq!(files(&[&["f a 1"], &["w a", "h b a"]]), "b=1@1");
    assert_eq!(files(&[&["f d/a 1"], &["o d", "h d/b d/a"]]), "d/b=1@1");
    assert_eq!(files(&[&["f a 1", "h b a", "h c b"]]), "a=1@0 b=1@0 c=1@0", "of a hard link");
    assert_eq!(files(&[&["f e/a 1", "l d e", "h b d/a"]]), "b=1@0 e/a=1@0", "through a link");
    assert_eq!(files(&[&["f a 1"], &["h a a"]]), "a=1@1", "to itself");
}

#[test]
fn hard_links_that_lead_nowhere_are_told_not_followed() {
    let merged = merge(&[&["h x y", "h y x", "h z z", "h w none", "f ok 1"]]);
    assert_eq!(listed(&merged.tree), "ok=1@0");
    assert_eq!(merged.trouble.len(), 4, "{:?}", merged.trouble);
    assert!(merged.trouble[0].contains("which is not in the image"), "{:?}", merged.trouble);
    assert_eq!(merge(&[&["d d", "h x d"]]).trouble.len(), 1, "a directory has no hard links");
}

#[test]
fn a_hard_link_to_a_symlink_is_that_symlink() {
    let mut merged = merge(&[&["f a 1", "l b a", "h c b"]]);
    let links = merged.tree.file_links(|_| true);
    let shown: Vec<String> = links.iter().map(|(from, to)| format!("{from}>{to}")).collect();
    assert_eq!(shown, ["b>a", "c>a"]);
}

#[test]
fn links_count_where_they_lead_to_a_file() {
    let lines = [
        "f etc/alternatives/gcc 1",
        "d dir",
        "l bin/cc /etc/alternatives/gcc",
        "l bin/gcc dir",
        "l bin/c++ cc",
        "l cc bin/cc",
    ];
    let mut merged = merge(&[&lines, &["l bin/gone nowhere"]]);
    let links = merged.tree.links_to_files(|path| path.as_bytes().starts_with(b"bin/"));
    assert_eq!(links, ["bin/c++", "bin/cc"].map(ImagePath::new));
}

#[test]
fn entries_below_a_symlink_land_in_its_target() {
    assert_eq!(files(&[&["d usr/lib", "l lib usr/lib"], &["f lib/z 1"]]), "usr/lib/z=1@1");
    assert_eq!(files(&[&["l lib usr/lib", "f lib/z 1"]]), "usr/lib/z=1@0", "which is made if need be");
    assert_eq!(files(&[&["d usr/lib", "l lib usr/lib", "f usr/lib/z 1"], &["w lib/z"]]), "");
    assert_eq!(files(&[&["l lib usr/lib", "f usr/lib/z 1"], &["o lib", "f lib/y 2"]]), "usr/lib/y=2@1");
    assert_eq!(files(&[&["f usr/lib/z 1", "l lib usr/lib"], &["w lib"]]), "usr/lib/z=1@0", "a link alone goes");
}

#[test]
fn links_never_leave_the_root() {
    assert_eq!(files(&[&["l esc /etc", "f esc/pw 1", "l up ../../..", "f up/u 2"]]), "etc/pw=1@0 u=2@0");
    assert_eq!(files(&[&["d a/b", "l a/b/c ../../../../x", "f a/b/c/f 1"]]), "x/f=1@0");
}

#[test]
fn loops_end() {
    let mut merged = merge(&[&["l l1 l2", "l l2 l1", "l self self", "f l1/x 1", "f self/y 1", "f ok 1"]]);
    assert_eq!(listed(&merged.tree), "ok=1@0");
    assert_eq!(merged.trouble.len(), 2);
    assert!(merged.trouble[0].contains("loop"), "{:?}", merged.trouble);
    assert!(merged.tree.file_links(|_| true).is_empty());
    assert_eq!(merged.tree.file(&ImagePath::new("self")).unwrap_err(), Unresolved::Loop);
    // Forty links are followed, as the kernel has it; one more is not.
    for (count, works) in [(MAX_HOPS, true), (MAX_HOPS + 1, false)] {
        let mut lines = vec!["f n0 1".to_owned()];
        lines.extend((1..=count).map(|i| format!("l n{i} n{}", i - 1)));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut merged = merge(&[&lines]);
        let end = ImagePath::new(format!("n{count}"));
        assert_eq!(merged.tree.file(&end).is_ok(), works, "{count} links");
    }
}

#[test]
fn links_that_fan_out_are_cut_off() {
    // Each link doubles the walk: 2^30 steps if nobody counts.
    let mut lines = vec!["d n0".to_owned()];
    lines.extend((1..=30).map(|i| format!("l n{i} n{0}/../n{0}", i - 1)));
    lines.push("f n30/x 1".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert!(merge(&[&lines]).trouble[0].contains("loop"));
}

#[test]
fn depth_is_bounded() {
    let deep = |n: usize| format!("f {}x 1", "d/".repeat(n));
    assert!(merge(&[&[&deep(2000)]]).trouble.is_empty());
    let merged = merge(&[&[&deep(100_000), "f ok 1"]]);
    assert_eq!(listed(&merged.tree), "ok=1@0");
    assert!(merged.trouble[0].ends_with("directories deep"));
}

#[test]
fn the_root_itself_is_no_file() {
    let merged = merge(&[&["f a 1"], &["f / 2", "l . a", "w /", "d /"]]);
    assert_eq!(listed(&merged.tree), "a=1@0");
    assert_eq!(merged.trouble.len(), 2);
}

#[test]
fn lookups_follow_links_and_tell_why_not() {
    let mut tree = merge(&[&["f usr/lib/a 1", "l lib usr/lib", "l dangling nowhere"]]).tree;
    let (place, content) = tree.file(&ImagePath::new("lib/a")).unwrap();
    assert_eq!((place.to_string().as_str(), content.as_str()), ("usr/lib/a", "1"));
    let mut why = |path: &str| tree.file(&ImagePath::new(path)).unwrap_err();
    assert_eq!(why("dangling"), Unresolved::Missing);
    assert_eq!(why("lib/a/b"), Unresolved::NotADirectory);
    assert_eq!(why("lib"), Unresolved::Missing, "a directory is no file");
}

/// What a person would do by hand: whole paths in one flat map, `None` being a directory.
#[derive(Default)]
struct Naive(BTreeMap<ImagePath, Option<(String, usize)>>);

impl Naive {
    fn clear(&mut self, path: &ImagePath, itself: bool) {
        let below = path.join("").as_bytes().to_vec();
        let inside = |p: &ImagePath| {
            path.is_root()
                || p.as_bytes().len() > below.len() && p.as_bytes().starts_with(&[&below[..], b"/"].concat())
        };
        self.0.retain(|p, _| !(inside(p) || itself && p == path));
    }

    fn make_parents(&mut self, path: &ImagePath) {
        let mut at = path.parent();
        while !at.is_root() {
            if !matches!(self.0.get(&at), Some(None)) {
                self.0.insert(at.clone(), None);
            }
            at = at.parent();
        }
    }

    fn put(&mut self, path: &ImagePath, content: String, layer: usize) {
        self.make_parents(path);
        self.clear(path, true);
        self.0.insert(path.clone(), Some((content, layer)));
    }

    fn content(&self, path: &ImagePath) -> Option<String> {
        self.0.get(path)?.as_ref().map(|(content, _)| content.clone())
    }

    fn apply(&mut self, layer: usize, entries: &[LayerEntry<String>]) {
        let lower = Naive(self.0.clone());
        for entry in entries {
            match entry.change {
                Change::Whiteout => self.clear(&entry.path, true),
                Change::Opaque if !matches!(self.0.get(&entry.path), Some(Some(_))) => {
                    self.clear(&entry.path, false)
                }
                _ => {}
            }
        }
        let mut late = Vec::new();
        for LayerEntry { path, change } in entries {
            match change {
                Change::File(content) => self.put(path, content.clone(), layer),
                Change::Dir => {
                    self.make_parents(path);
                    if !matches!(self.0.get(path), Some(None)) {
                        self.0.insert(path.clone(), None);
                    }
                }
                Change::Hardlink(to) => match self.content(to).or_else(|| lower.content(to)) {
                    Some(content) => self.put(path, content, layer),
                    None => late.push((path, to)),
                },
                _ => {}
            }
        }
        for (path, to) in late {
            if let Some(content) = self.content(to) {
                self.put(path, content, layer);
            }
        }
    }

    fn listed(&self) -> String {
        let files = self.0.iter().filter_map(|(p, c)| c.as_ref().map(|(c, l)| format!("{p}={c}@{l}")));
        files.collect::<Vec<_>>().join(" ")
    }
}

fn path() -> impl Strategy<Value = ImagePath> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4).prop_map(|p| ImagePath::new(p.join("/")))
}

fn change() -> impl Strategy<Value = Change<String>> {
    prop_oneof![
        4 => "[0-9]".prop_map(Change::File),
        2 => Just(Change::Dir),
        2 => Just(Change::Whiteout),
        2 => Just(Change::Opaque),
        2 => path().prop_map(Change::Hardlink),
    ]
}

fn entries() -> impl Strategy<Value = Vec<LayerEntry<String>>> {
    prop::collection::vec((path(), change()).prop_map(|(path, change)| LayerEntry { path, change }), 0..9)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_is_what_a_flat_map_says(layers in prop::collection::vec(entries(), 1..5)) {
        let (mut tree, mut naive) = (Tree::new(), Naive::default());
        for (i, layer) in layers.iter().enumerate() {
            naive.apply(i, layer);
            tree.apply(i, layer.clone());
            prop_assert_eq!(listed(&tree), naive.listed());
        }
    }

    #[test]
    fn an_empty_layer_changes_nothing(layers in prop::collection::vec(entries(), 1..4)) {
        let mut tree = Tree::new();
        for (i, layer) in layers.into_iter().enumerate() {
            tree.apply(i, layer);
        }
        let before = listed(&tree);
        tree.apply(9, Vec::new());
        prop_assert_eq!(before, listed(&tree));
    }
}
