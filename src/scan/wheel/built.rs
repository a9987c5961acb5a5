//! What a wheel was built for, as plans say it.

use std::collections::BTreeSet;

use super::{Checked, is_loaded};
use crate::model::{Built, Form, Module, SmArch};

/// Architectures that a module of one translation unit has at least, where the whole library is built for a list: a
/// module with fewer was written for them.
const GENERAL: usize = 3;

/// The architectures that most of the wheel's general modules have, and the toolkit that compiled them. Where no
/// module is general (kernels written for one architecture each, a library built for one or two), those that any
/// module has.
pub fn built_of(checked: &Checked, package: &str) -> Built {
    let files = || checked.evidence.files.iter().filter(|f| is_loaded(f));
    let modules = || files().flat_map(|f| &f.facts.modules).filter(|m| !m.relocatable);
    let general: Vec<&Module> = modules().filter(|m| archs(m, None).len() >= GENERAL).collect();
    let of = |form: Form| -> Vec<SmArch> {
        if general.is_empty() {
            let any: BTreeSet<SmArch> = modules().flat_map(|m| archs(m, Some(form))).collect();
            return any.into_iter().collect();
        }
        let all: u64 = general.iter().map(|m| m.count).sum();
        let there: BTreeSet<SmArch> = general.iter().flat_map(|m| archs(m, Some(form))).collect();
        let has = |arch: &SmArch| {
            let with = general.iter().filter(|m| archs(m, Some(form)).contains(arch));
            with.map(|m| m.count).sum::<u64>() * 2 > all
        };
        there.into_iter().filter(has).collect()
    };
    let newest = || modules().flat_map(|m| &m.items).filter_map(|i| i.item.toolkit).max();
    let toolkit = checked.evidence.cuda_of(package).or_else(newest);
    let code = modules().flat_map(|m| &m.items).filter(|i| i.item.form == Form::CodeObject);
    let gfx: BTreeSet<_> = code.filter_map(|i| i.item.arch.gfx()).map(|g| g.processor).collect();
    let (sass, ptx) = (of(Form::Sass), of(Form::Ptx));
    // Of a wheel for several makers the plan knows CUDA's part.
    let gfx = if sass.is_empty() && ptx.is_empty() { gfx.into_iter().collect() } else { Vec::new() };
    Built { sass, ptx, gfx, toolkit }
}

fn archs(module: &Module, form: Option<Form>) -> BTreeSet<SmArch> {
    module.items.iter().filter(|i| form.is_none_or(|f| i.item.form == f)).filter_map(|i| i.item.arch.sm()).collect()
}
