//! Layers merged, packages assembled: evidence.

use std::sync::Arc;

use std::collections::BTreeMap;

use super::data_sets::Folding;
use super::layer::{self, LayerRead, Oddities};
use super::loading;
use super::probe::Payload;
use crate::catalog::Catalog;
use crate::image::overlay::Tree;
use crate::image::{Content, Image};
use crate::inventory;
use crate::loader::Simulated;
use crate::model::{
    DataSet, Digest, Evidence, EvidenceFile, FileFacts, Gap, GapEffect, ImageFacts, ImagePath, LayerSummary,
    Machine, Platform, Stats,
};

/// Merges what was read of an image's layers.
pub fn evidence(reference: &str, image: Image, layers: Vec<LayerRead>, catalog: &Catalog) -> Evidence {
    let mut stats = Stats::default();
    let mut gaps: Vec<Gap> = Vec::new();
    let mut summaries = Vec::new();
    let mut tree: Tree<Payload> = Tree::new();
    let digests: Vec<Option<Digest>> = image.layers.iter().map(|l| l.digest).collect();
    for (index, (layer, mut read)) in image.layers.iter().zip(layers).enumerate() {
        stats.bytes_read += read.unpacked;
        stats.files += read.files;
        stats.elfs += read.elfs;
        let name = layer.digest.or(read.diff_id);
        let mut oddities = Oddities::default();
        for (path, why) in tree.apply(index, std::mem::take(&mut read.entries)) {
            oddities.add(&path, why);
        }
        let mut own = read.take_gaps();
        own.append(&mut oddities.into_gaps());
        layer::label(&mut own, name);
        gaps.append(&mut own);
        summaries.push(LayerSummary {
            digest: layer.digest,
            diff_id: layer.diff_id.or(read.diff_id),
            size: layer.size.unwrap_or(read.stored),
            created_by: layer.created_by.clone(),
            cached: None,
        });
    }
    let mut files = Vec::new();
    let mut facts = Vec::new();
    let mut empty_driver_files = Vec::new();
    let mut landmarks = tree.links_to_files(inventory::is_landmark);
    let mut data = Folding::new(catalog);
    for link in tree.links_to_files(|path| catalog.data_libraries().file(path).is_some()) {
        data.see(&link, None);
    }
    tree.each_file(|found| {
        data.see(&found.path, Some(found.layer));
        if inventory::is_landmark(&found.path) {
            landmarks.push(found.path.clone());
        }
        let Some(carried) = found.file else { return };
        let mut add = |path: ImagePath, facts: &Arc<FileFacts>, number: Option<u32>| {
            for gap in &facts.gaps {
                let digest = digests.get(found.layer).copied().flatten();
                gaps.push(Gap { path: Some(path.clone()), layer: digest, ..gap.clone() });
            }
            let layer = Some(found.layer);
            let in_archive = number.is_none();
            files.push((EvidenceFile { path, layer, facts: facts.clone(), component: None, in_archive }, number));
        };
        if carried.empty_driver {
            empty_driver_files.push(found.path.clone());
        }
        if let Some(facts) = &carried.facts {
            add(found.path.clone(), facts, Some(found.id));
        }
        for (path, facts) in &carried.members {
            add(path.clone(), facts, None);
        }
        if let Some(fact) = &carried.package {
            facts.push((found.path, fact.clone()));
        }
    });
    files.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    let (mut files, numbers): (Vec<EvidenceFile>, Vec<Option<u32>>) = files.into_iter().unzip();
    landmarks.sort();
    if landmarks.len() > inventory::MAX_LANDMARKS {
        let more = landmarks.split_off(inventory::MAX_LANDMARKS).len();
        let mut gap = Gap::image(format!("{more} more compilers and headers are not listed"));
        gap.effect = GapEffect::None;
        gaps.push(gap);
    }
    let links = tree.file_links(|payload| payload.as_ref().is_some_and(|c| c.facts.is_some()));
    let rows: Vec<(ImagePath, &inventory::Fact)> = facts.iter().map(|(p, f)| (p.clone(), &**f)).collect();
    let (data, unlisted) = data.finish();
    gaps.extend(unlisted);
    let of_data = data.iter().map(|(_, first)| first.clone());
    let paths: Vec<ImagePath> = files.iter().map(|f| f.path.clone()).chain(of_data).collect();
    let inventory = inventory::assemble(&rows, &paths, &KnobNames(catalog));
    for (file, owner) in files.iter_mut().zip(&inventory.owner) {
        file.component = *owner;
    }
    let owners = inventory.owner.iter().skip(files.len()).copied();
    let data_sets =
        data.into_iter().zip(owners).map(|((set, _), component)| DataSet { component, ..set }).collect();
    let is_tree = match image.layers.first().map(|l| &l.content) {
        Some(Content::Tree(_)) => true,
        Some(Content::Files(files)) => files.is_root(),
        _ => false,
    };
    if is_tree && stats.elfs == 0 {
        let why = "holds no program and no library: not a root file system (or an empty one)";
        gaps.push(Gap::image(why));
    }
    // A file or a wheel by itself says nothing about what will stand around it.
    let alone = matches!(image.layers.first().map(|l| &l.content), Some(Content::File(_) | Content::Zip(_)));
    let loading = match alone {
        true => Simulated::default(),
        false => loading::simulate(&tree, &files, &numbers, &image.config, &inventory.packages, catalog),
    };
    gaps.extend(loading.gaps);
    gaps.extend(inventory.gaps);
    gaps.sort();
    gaps.dedup();
    Evidence {
        schema: Evidence::SCHEMA,
        image: ImageFacts {
            reference: reference.to_owned(),
            digest: image.digest,
            platform: image.platform.or_else(|| machine_of(&files)),
            size: summaries.iter().map(|l| l.size).sum(),
            config: image.config,
            layers: summaries,
            alone,
        },
        files,
        packages: inventory.packages,
        components: inventory.components,
        claims: inventory.claims,
        toolkits: inventory.toolkits,
        landmarks,
        data_sets,
        loads: loading.loads,
        empty_driver_files,
        driver: loading.driver,
        libc: loading.libc,
        ld_cache: loading.ld_cache,
        links,
        gaps,
        stats,
    }
}

/// The platform of a tree without a config: the machine that most of its ELF files are for.
fn machine_of(files: &[EvidenceFile]) -> Option<Platform> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for elf in files.iter().filter_map(|f| f.facts.elf.as_ref()) {
        if let Some(name) = Machine(elf.machine).platform() {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, n)| *n).map(|(name, _)| Platform::linux(name))
}

/// Names a component by what the build knobs say identifies a project.
struct KnobNames<'a>(&'a Catalog);

impl inventory::Naming for KnobNames<'_> {
    fn component_for(&self, path: &ImagePath) -> Option<String> {
        self.0.knobs().knob_for("", [path]).map(|k| k.dists.first().unwrap_or(&k.project).clone())
    }
}
