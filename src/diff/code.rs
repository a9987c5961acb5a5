//! Components with device code: which architectures came and went, and whom that matters to.

use std::collections::{BTreeMap, BTreeSet};

use super::pair::{family, pairs};
use crate::catalog::Catalog;
use crate::catalog::compat::{Fit, Host, module_fit, taken};
use crate::lint::{Coverage, counts};
use crate::model::{
    Arch, Component, Device, Evidence, Form, ImagePath, Item, Manager, Verdict, escape, package_name,
};
use crate::report::Role;
use crate::report::diff::{ArchChange, Code, ComponentChange, CountChange, Kind, ServedChange};

type Archs = BTreeMap<(Arch, Form), u64>;

/// What is known of a component in one image.
struct Known<'a> {
    component: &'a Component,
    role: Role,
    words: &'a BTreeMap<Device, Verdict>,
    /// With the modules that have it.
    archs: Archs,
    bytes: u64,
    has_code: bool,
}

fn known<'a>(evidence: &'a Evidence, coverage: &'a [Coverage], catalog: &Catalog) -> Vec<Known<'a>> {
    let row = |(index, component): (usize, &'a Component)| {
        let of = coverage.get(index)?;
        let mut out =
            Known { component, role: of.role, words: &of.words, archs: Archs::new(), bytes: 0, has_code: false };
        for file in evidence.files.iter().filter(|f| f.component == Some(index)) {
            for module in &file.facts.modules {
                out.has_code = true;
                // Several entries of one architecture are one module's.
                let mut seen = Archs::new();
                for item in &module.items {
                    out.bytes = out.bytes.saturating_add(item.bytes);
                    // What is linked at build time, or lies in files that nothing loads, serves nobody.
                    if !module.relocatable && counts(file, catalog) {
                        let modules = seen.entry((item.item.arch, item.item.form)).or_insert(0);
                        *modules = module.count;
                    }
                }
                for (arch, modules) in seen {
                    let sum = out.archs.entry(arch).or_insert(0);
                    *sum = sum.saturating_add(modules);
                }
            }
        }
        Some(out)
    };
    evidence.components.iter().enumerate().filter_map(row).collect()
}

/// What components are paired by, each kind of key apart.
type Keys = [(u8, String, Option<ImagePath>); 4];

/// The same place; packages move with the Python they are installed in, files without a package have nothing but their
/// place; any place; the family.
fn keys(component: &Component) -> Keys {
    let (name, root) = (package_name(&component.name), Some(component.root.clone()));
    let moved = match component.manager {
        Manager::Path => (0, name.clone(), root.clone()),
        Manager::Pip | Manager::Dpkg | Manager::Rpm | Manager::Apk | Manager::Conda => (1, name.clone(), None),
    };
    [(0, name.clone(), root), moved, (2, name, None), (3, family(&component.name), None)]
}

/// What changed, worst role first, then by name.
pub fn components(
    old: (&Evidence, &[Coverage]),
    new: (&Evidence, &[Coverage]),
    catalog: &Catalog,
) -> Vec<ComponentChange> {
    let before = known(old.0, old.1, catalog);
    let after = known(new.0, new.1, catalog);
    let keys = |all: &[Known<'_>]| -> Vec<Keys> { all.iter().map(|k| keys(k.component)).collect() };
    let mut out: Vec<ComponentChange> = pairs(&keys(&before), &keys(&after))
        .into_iter()
        .filter_map(|(a, b)| change(a.and_then(|a| before.get(a)), b.and_then(|b| after.get(b))))
        .collect();
    out.sort_by(|a, b| (a.role, &a.name, &a.root, a.change).cmp(&(b.role, &b.name, &b.root, b.change)));
    out
}

/// `None`: neither has device code, or all that is compared is equal.
fn change(old: Option<&Known<'_>>, new: Option<&Known<'_>>) -> Option<ComponentChange> {
    if !old.is_some_and(|k| k.has_code) && !new.is_some_and(|k| k.has_code) {
        return None;
    }
    let shown = new.or(old)?;
    let text = |t: &String| escape(t.as_bytes());
    let version = |k: Option<&Known<'_>>| k.and_then(|k| k.component.version.as_ref()).map(text);
    let differs = |of: &dyn Fn(&Known<'_>) -> String| {
        let both = old.zip(new).map(|(a, b)| (of(a), of(b)));
        both.filter(|(a, b)| a != b).map(|(a, _)| a)
    };
    let old_root = old.zip(new).map(|(a, b)| (&a.component.root, &b.component.root)).filter(|(a, b)| a != b);
    let (none, no_words) = (Archs::new(), BTreeMap::new());
    let (had, has) = (old.map_or(&none, |k| &k.archs), new.map_or(&none, |k| &k.archs));
    let (worse, better) = served(old.map_or(&no_words, |k| k.words), new.map_or(&no_words, |k| k.words));
    let change = ComponentChange {
        change: match (old, new) {
            (Some(_), None) => Kind::Removed,
            (None, _) => Kind::Added,
            _ => Kind::Changed,
        },
        name: text(&shown.component.name),
        old_name: differs(&|k| text(&k.component.name)),
        role: old.map_or(shown.role, |k| k.role.min(shown.role)),
        root: shown.component.root.clone(),
        old_root: old_root.map(|(a, _)| a.clone()),
        old_version: version(old),
        new_version: version(new),
        old_bytes: old.map_or(0, |k| k.bytes),
        new_bytes: new.map_or(0, |k| k.bytes),
        lost: archs(had, has, &worse),
        won: archs(has, had, &better).into_iter().map(|w| ArchChange { instead: Vec::new(), ..w }).collect(),
        fewer: counts_of(had, has, &worse, std::cmp::Ordering::Less),
        more: counts_of(had, has, &better, std::cmp::Ordering::Greater),
        served_worse: worse,
        served_better: better,
    };
    let equal = change.change == Kind::Changed
        && change.old_name.is_none()
        && change.old_root.is_none()
        && change.old_version == change.new_version
        && change.old_bytes == change.new_bytes
        && [&change.lost, &change.won].iter().all(|l| l.is_empty())
        && [&change.served_worse, &change.served_better].iter().all(|l| l.is_empty());
    (!equal).then_some(change)
}

/// The capabilities that are served worse, and better. What has no word serves nobody.
fn served(
    old: &BTreeMap<Device, Verdict>,
    new: &BTreeMap<Device, Verdict>,
) -> (Vec<ServedChange>, Vec<ServedChange>) {
    let all: BTreeSet<Device> = old.keys().chain(new.keys()).copied().collect();
    let rows = all.into_iter().map(|capability| ServedChange {
        capability,
        old: old.get(&capability).copied(),
        new: new.get(&capability).copied(),
    });
    let word = |w: Option<Verdict>| w.unwrap_or(Verdict::Fail);
    rows.filter(|r| word(r.old) != word(r.new)).partition(|r| word(r.new) < word(r.old))
}

/// The capabilities of `changed` that code of an architecture serves.
fn matters(code: &(Arch, Form), changed: &[ServedChange]) -> Vec<Device> {
    let item = Item::of(code.0, code.1);
    let serves = |c: &Device| module_fit([&item], &Host::bare(*c)) > Fit::Missing;
    changed.iter().map(|c| c.capability).filter(serves).collect()
}

/// The GPU that an architecture's code was made for.
fn device_of(arch: Arch) -> Option<Device> {
    match arch {
        Arch::Sm(arch) => arch.capability().map(Device::from),
        Arch::Gfx(arch) => (!arch.processor.is_generic()).then_some(Device::Amd(arch)),
        Arch::Intel(ip) => Some(ip.into()),
        Arch::AmdSpirv | Arch::Spir64 | Arch::Unknown => None,
    }
}

/// What only the first has.
fn archs(first: &Archs, second: &Archs, changed: &[ServedChange]) -> Vec<ArchChange> {
    let others: Vec<Item> = second.keys().map(|(arch, form)| Item::of(*arch, *form)).collect();
    let row = |code: &(Arch, Form)| {
        let instead = device_of(code.0).map(|own| taken(&others, &Host::bare(own))).unwrap_or_default();
        ArchChange {
            arch: code.0,
            form: code.1,
            matters_for: matters(code, changed),
            instead: instead.into_iter().map(|i| Code { arch: i.arch, form: i.form }).collect(),
        }
    };
    first.keys().filter(|code| !second.contains_key(code)).map(row).collect()
}

/// What both have in another number of modules, where a capability of `changed` is served by it.
fn counts_of(old: &Archs, new: &Archs, changed: &[ServedChange], wanted: std::cmp::Ordering) -> Vec<CountChange> {
    let both = old.iter().filter_map(|(code, old)| Some((code, *old, *new.get(code)?)));
    both.filter(|(_, old, new)| new.cmp(old) == wanted)
        .map(|(code, old, new)| CountChange {
            arch: code.0,
            form: code.1,
            old,
            new,
            matters_for: matters(code, changed),
        })
        .filter(|change| !change.matters_for.is_empty())
        .collect()
}
