//! Device code as it would be after another build.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::model::{
    Arch, Built, Container, Evidence, EvidenceFile, Form, Item, ItemCount, Maker, Module, Packing, PtxIsa, SmArch,
};

/// A component's files hold what was built: where they held code that could be loaded, they hold that. A build for AMD
/// leaves other makers' code beside it, and the other way round.
pub fn component(evidence: &mut Evidence, index: usize, built: &Built, catalog: &Catalog) {
    let rows = catalog.components();
    for file in evidence.files.iter_mut().filter(|f| f.component == Some(index)) {
        let judged = file.facts.kind.loadable() && rows.profiler(&file.path).is_none();
        if judged && file.facts.modules.iter().any(|m| !m.relocatable) {
            let facts = Arc::make_mut(&mut file.facts);
            let maker = if built.gfx.is_empty() { Maker::Nvidia } else { Maker::Amd };
            let own = |m: &Module| m.items.iter().any(|i| i.item.arch.maker().is_none_or(|of| of == maker));
            let all_others = !facts.modules.iter().any(own);
            let made = module(&facts.modules, built, catalog);
            facts.modules.retain(|m| !own(m) && !all_others);
            facts.modules.push(made);
        }
    }
}

fn module(before: &[Module], built: &Built, catalog: &Catalog) -> Module {
    let items = || before.iter().flat_map(|m| &m.items);
    let packing = items().map(|i| i.item.packing).next().unwrap_or(Packing::None);
    let written = built.toolkit.and_then(|t| catalog.toolkits().ptx_isa(t));
    let isa = written.or_else(|| items().filter_map(|i| i.item.isa).max());
    let item = |arch: SmArch, form: Form, isa: Option<PtxIsa>| ItemCount {
        item: Item { isa, packing, toolkit: built.toolkit, ..Item::of(arch, form) },
        entries: 1,
        bytes: 0,
    };
    let sass = built.sass.iter().map(|a| item(*a, Form::Sass, None));
    let ptx = built.ptx.iter().map(|a| item(*a, Form::Ptx, isa));
    let gfx = built.gfx.iter().map(|p| ItemCount {
        item: Item { packing, ..Item::of(Arch::Gfx((*p).into()), Form::CodeObject) },
        entries: 1,
        bytes: 0,
    });
    Module {
        container: if built.gfx.is_empty() { Container::Fatbin } else { Container::Bundle },
        section: None,
        relocatable: false,
        items: sass.chain(ptx).chain(gfx).collect(),
        count: before.iter().map(|m| m.count).sum(),
        first: 0,
    }
}

/// Drops files, and keeps every index in place.
pub fn without_files(evidence: &mut Evidence, gone: impl Fn(&EvidenceFile) -> bool) {
    let mut place = Vec::with_capacity(evidence.files.len());
    let mut next = 0;
    for file in &evidence.files {
        let stays = !gone(file);
        place.push(stays.then_some(next));
        next += usize::from(stays);
    }
    evidence.files.retain(|f| !gone(f));
    evidence.loads.retain_mut(|loads| match place.get(loads.file).copied().flatten() {
        Some(file) => {
            loads.file = file;
            true
        }
        None => false,
    });
}
