//! The thresholds, on make-ups of real libraries.

use super::*;
use crate::model::{ItemCount, Packing, PtxIsa};

fn module(archs: &[&str], count: u64) -> Module {
    let items = archs
        .iter()
        .map(|a| {
            let ptx = a.starts_with("compute_");
            let item = Item {
                arch: a.parse().unwrap(),
                form: if ptx { Form::Ptx } else { Form::Sass },
                kind: 0,
                isa: ptx.then_some(PtxIsa::new(8, 8)),
                packing: Packing::None,
                toolkit: None,
            };
            ItemCount { item, entries: count, bytes: 0 }
        })
        .collect();
    Module { container: Container::Fatbin, section: None, relocatable: false, items, count, first: 0 }
}

fn word_for(modules: &[Module], gpu: &str) -> (Verdict, Cause) {
    let host = Host::bare(gpu.parse().unwrap());
    let j = judge(&Code { modules, union: false, incomplete: None }, &host).unwrap();
    (j.verdict, j.cause)
}

#[test]
fn general_modules_decide_where_there_are_any() {
    let torch = [module(&["sm_75", "sm_80", "sm_86", "sm_90"], 400), module(&["sm_90a"], 20)];
    assert_eq!(word_for(&torch, "8.9"), (Verdict::Ok, Cause::SpecialsElsewhere { missing: 20, of: 420 }));
    assert_eq!(word_for(&torch, "9.0"), (Verdict::Ok, Cause::Fits));
    assert_eq!(word_for(&torch, "12.0"), (Verdict::Fail, Cause::NoImage));
    let mixed = [module(&["sm_75", "sm_80", "sm_90"], 3), module(&["sm_80", "sm_90", "sm_100"], 2)];
    assert_eq!(word_for(&mixed, "7.5"), (Verdict::Warn, Cause::Partly { missing: 2, of: 5, block: None }));
    assert_eq!(word_for(&mixed, "10.0"), (Verdict::Fail, Cause::Partly { missing: 3, of: 5, block: None }));
    // A chip's own kernels with a fallback are not general, however many suffixes they carry.
    let vllm = [module(&["sm_75", "sm_80", "sm_86", "sm_90"], 54), module(&["sm_90a", "sm_100f", "sm_120f"], 6)];
    assert_eq!(word_for(&vllm, "8.9"), (Verdict::Ok, Cause::SpecialsElsewhere { missing: 6, of: 60 }));
}

#[test]
fn special_modules_alone_are_weighed() {
    let few = [module(&["sm_80", "compute_80"], 9), module(&["sm_90a"], 1)];
    assert_eq!(word_for(&few, "8.6"), (Verdict::Ok, Cause::SpecialsElsewhere { missing: 1, of: 10 }));
    let half = [module(&["sm_80"], 5), module(&["sm_90a"], 5)];
    assert_eq!(word_for(&half, "8.6"), (Verdict::Warn, Cause::MostlySpecial { missing: 5, of: 10 }));
    assert_eq!(word_for(&[module(&["sm_90a"], 5)], "8.0"), (Verdict::Fail, Cause::NoImage));
    assert_eq!(word_for(&[module(&["compute_80"], 5)], "9.0"), (Verdict::Slow, Cause::Jit { modules: 5, of: 5 }));
}

#[test]
fn a_refused_module_is_never_excused() {
    let mut host = Host::bare("9.0".parse().unwrap());
    host.jit = Some(PtxIsa::new(8, 7));
    let modules = [module(&["sm_80", "sm_90"], 9), module(&["compute_80"], 1)];
    let j = judge(&Code { modules: &modules, union: false, incomplete: None }, &host).unwrap();
    let block = Some(Block::PtxTooNew(PtxIsa::new(8, 8)));
    assert_eq!((j.verdict, j.cause), (Verdict::Fail, Cause::Partly { missing: 1, of: 10, block }));
}

#[test]
fn siblings_excuse_only_what_is_special() {
    let host = Host::bare("8.0".parse().unwrap());
    let judge = |m: &[Module]| super::judge(&Code { modules: m, union: false, incomplete: None }, &host).unwrap();
    let general = judge(&[module(&["sm_75", "sm_80", "sm_90"], 1)]);
    let hopper = judge(&[module(&["sm_90a"], 1)]);
    let other = judge(&[module(&["sm_60", "sm_70", "sm_75"], 1)]);
    let mut files = [general.clone(), hopper.clone()];
    assert_eq!(component(&mut files), Some(1));
    assert_eq!((files[1].verdict, &files[1].cause), (Verdict::Ok, &Cause::SiblingServes));
    let mut files = [general, other];
    assert_eq!(component(&mut files).map(|i| files[i].verdict), Some(Verdict::Fail));
    let mut files = [hopper.clone(), hopper];
    assert_eq!(component(&mut files).map(|i| files[i].verdict), Some(Verdict::Fail));
}

#[test]
fn general_modules_are_weighed_over_the_component() {
    let host = Host::bare("7.5".parse().unwrap());
    let judge = |m: &[Module]| super::judge(&Code { modules: m, union: false, incomplete: None }, &host).unwrap();
    let main = judge(&[module(&["sm_75", "sm_80", "sm_90"], 30)]);
    let linalg = judge(&[module(&["sm_80", "sm_86", "sm_90"], 3)]);
    let mut files = [main.clone(), linalg.clone()];
    let worst = component(&mut files).unwrap();
    let want = (Verdict::Warn, Cause::Partly { missing: 3, of: 33, block: None });
    assert_eq!((files[worst].verdict, files[worst].cause.clone()), want);
    let mut alone = [linalg.clone(), linalg];
    assert_eq!(component(&mut alone).map(|i| alone[i].verdict), Some(Verdict::Fail));
}

#[test]
fn a_module_of_many_that_needs_the_jit_does_not_make_a_start_slow() {
    let code =
        |jit| [module(&["sm_80", "sm_86", "sm_90"], 60), module(&["sm_75", "sm_80", "sm_86", "compute_86"], jit)];
    assert_eq!(word_for(&code(1), "9.0"), (Verdict::Ok, Cause::SomeJit { modules: 1, of: 61 }));
    assert_eq!(word_for(&code(10), "9.0"), (Verdict::Slow, Cause::Jit { modules: 10, of: 70 }));
}

#[test]
fn a_fallback_in_ptx_beside_native_code_is_not_slow() {
    let host = Host::bare("9.0".parse().unwrap());
    let judge = |m: &[Module]| super::judge(&Code { modules: m, union: false, incomplete: None }, &host).unwrap();
    let general = judge(&[module(&["sm_75", "sm_80", "sm_90"], 30)]);
    let mut files = [general.clone(), judge(&[module(&["sm_80", "compute_80"], 76)])];
    assert_eq!(component(&mut files).map(|i| files[i].verdict), Some(Verdict::Ok));
    let mut files = [general, judge(&[module(&["compute_80"], 1)])];
    assert_eq!(component(&mut files).map(|i| files[i].verdict), Some(Verdict::Slow), "PTX alone is no fallback");
}

#[test]
fn damage_and_unknown_kinds_are_unknown() {
    let host = Host::bare("8.0".parse().unwrap());
    let modules = [module(&["sm_80"], 1)];
    let hurt = Code { modules: &modules, union: false, incomplete: Some("cut off".into()) };
    assert_eq!(judge(&hurt, &host).unwrap().verdict, Verdict::Unknown);
    let mut odd = module(&["sm_80", "sm_90"], 1);
    odd.items[1].item.form = Form::Unknown;
    let code = Code { modules: &[odd], union: false, incomplete: None };
    assert_eq!(judge(&code, &host).unwrap().verdict, Verdict::Unknown);
    let mut lto = module(&["sm_80"], 1);
    lto.items[0].item.form = Form::LtoIr;
    let code = Code { modules: &[lto], union: false, incomplete: None };
    assert_eq!(judge(&code, &host).unwrap().cause, Cause::NeedsLinker);
}

fn others(container: Container, modules: &[&[&str]]) -> Vec<Module> {
    let item = |code: &&str| {
        let arch: Arch = code.parse().unwrap();
        let form = match arch {
            Arch::Gfx(_) => Form::CodeObject,
            Arch::Intel(_) => Form::Native,
            _ => Form::Spirv,
        };
        let item = Item { arch, form, kind: 6, isa: None, packing: Packing::None, toolkit: None };
        ItemCount { item, entries: 1, bytes: 1 }
    };
    let module = |items: &&[&str]| Module {
        container,
        section: None,
        relocatable: false,
        items: items.iter().map(item).collect(),
        count: 1,
        first: 0,
    };
    modules.iter().map(module).collect()
}

fn word_on(modules: &[Module], gpu: &str) -> (Verdict, Cause) {
    let host = crate::catalog::Catalog::embedded().bare_host(gpu.parse().unwrap());
    let judged = judge(&Code { modules, union: false, incomplete: None }, &host).unwrap();
    (judged.verdict, judged.cause)
}

#[test]
fn images_for_several_targets_are_one_choice() {
    let both = others(Container::Sycl, &[&["spir64"], &["intel_gpu_12_60_7"]]);
    assert_eq!(word_on(&both, "12.60.7").0, Verdict::Ok);
    assert_eq!(word_on(&both, "20.1.0").0, Verdict::Slow);
    let machine = others(Container::Sycl, &[&["intel_gpu_12_60_7"]]);
    assert_eq!(word_on(&machine, "20.1.0"), (Verdict::Fail, Cause::NoImage));
    let openmp = others(Container::OffloadBinary, &[&["gfx90a"], &["gfx1100"]]);
    assert_eq!(word_on(&openmp, "gfx1100").0, Verdict::Ok);
}

#[test]
fn bundles_are_judged_one_by_one() {
    let two = others(Container::Bundle, &[&["gfx90a", "gfx942"], &["gfx90a", "gfx942", "gfx1100"]]);
    assert_eq!(word_on(&two, "gfx942").0, Verdict::Ok);
    assert!(matches!(
        word_on(&two, "gfx1100"),
        (Verdict::Warn | Verdict::Fail, Cause::Partly { missing: 1, of: 2, .. })
    ));
    assert_eq!(word_on(&two, "gfx1030"), (Verdict::Fail, Cause::NoImage));
    assert_eq!(word_on(&two, "9.0"), (Verdict::Fail, Cause::OtherMakers));
}
