//! From the fit of modules to the word for a file and a component: VERDICTS, "From code to component".

use std::collections::BTreeSet;

use super::compat::{Block, Doubt, Fit, Host, is_machine_code, module_fit};
use crate::model::{Arch, Container, Feature, Form, Item, Maker, Module, Verdict};

/// A module with machine code for this many capabilities or more, suffixes and PTX left out, is general; with
/// fewer it is special (kernels written for one chip, with a fallback or two).
///
/// Measured on the libraries of 20 wheels that are known to work: counting suffixed code or PTX takes vllm's and
/// flash-attention's Hopper and Blackwell kernels for general code and fails vllm on every 8.x GPU.
pub const GENERAL: usize = 3;

/// The same for AMD's and Intel's bundles, which carry no PTX beside their machine code: whole packages are built for
/// two processors.
const GENERAL_OF_OTHERS: usize = 2;

/// Of general modules, one in this many may lack the GPU before the whole counts as failing: below, parts of the
/// component fail (`warn`). torch 2.15 on 7.5 lacks 32 of 510 (MAGMA's), onnxruntime 1.31 lacks 91 of 308; torch
/// 2.8 on 6.1 lacks 393 of 500.
const FAILS_FROM_ONE_IN: u64 = 2;

/// Of one file's general modules, fewer than one in this many may lack the GPU without a word: vllm 0.33 on 7.5
/// lacks one of 60, a kernel for newer chips.
const MISSED_FROM_ONE_IN: u64 = 10;

/// Of general modules, one in this many may need the JIT before cold starts count as slow: vllm 0.33 on 9.0 has
/// one of 60.
const SLOW_FROM_ONE_IN: u64 = 10;

/// Device code of one file, as it is judged.
#[derive(Debug, Clone)]
pub struct Code<'a> {
    pub modules: &'a [Module],
    /// Its modules hold one architecture each by design, or are loaded by name: judged by their union.
    pub union: bool,
    /// Why the listing is incomplete, if it is.
    pub incomplete: Option<String>,
}

/// Modules by how they fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub total: u64,
    pub native: u64,
    pub compatible: u64,
    pub jit: u64,
    pub missing: u64,
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.total += other.total;
        self.native += other.native;
        self.compatible += other.compatible;
        self.jit += other.jit;
        self.missing += other.missing;
    }
}

/// What decided a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Every module that is judged fits.
    Fits,
    /// Kernels written for other chips are missing, as they may be.
    SpecialsElsewhere {
        missing: u64,
        of: u64,
    },
    /// A few modules are compiled by the driver; no start is slow for it.
    SomeJit {
        modules: u64,
        of: u64,
    },
    /// The file serves other chips; a sibling of its package serves this one.
    SiblingServes,
    /// Half of the code or more is written for other chips.
    MostlySpecial {
        missing: u64,
        of: u64,
    },
    Jit {
        modules: u64,
        of: u64,
    },
    Uncertain(Doubt),
    /// Some general modules have nothing for this GPU, or nothing that its driver takes.
    Partly {
        missing: u64,
        of: u64,
        block: Option<Block>,
    },
    /// No module has anything for this GPU.
    NoImage,
    /// All that is there for this GPU is refused by the driver.
    Refused(Block),
    /// It holds code for other makers' GPUs alone.
    OtherMakers,
    /// Its code lies in archives, none of which is there; which it would open.
    Elsewhere(String),
    /// LTO-IR, tile IR or relocatable code alone: loads only through a compiler or linker at run time.
    NeedsLinker,
    Incomplete(String),
}

/// The word for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub cause: Cause,
    pub counts: Counts,
    /// All its modules are special: its failure may be by design.
    pub special: bool,
    /// General modules that lack the GPU, of all general modules.
    pub general: (u64, u64),
    /// It holds machine code for some GPU, so its PTX is a fallback.
    pub machine_code: bool,
}

impl Judgement {
    /// Of what holds no code that could be judged.
    pub fn without_code(verdict: Verdict, cause: Cause) -> Self {
        let counts = Counts::default();
        Self { verdict, cause, counts, special: false, general: (0, 0), machine_code: false }
    }
}

struct Judged {
    fit: Fit,
    count: u64,
    entries: u64,
    general: bool,
}

impl Judged {
    fn is_short(&self) -> bool {
        matches!(self.fit, Fit::Missing | Fit::Blocked(_))
    }
}

/// Judges one file; `None` if it holds nothing that could ever be loaded.
pub fn judge(code: &Code<'_>, host: &Host) -> Option<Judgement> {
    let modules: Vec<Judged> = regions(code, host.maker()).map(|r| r.judge(host)).collect();
    let understood = code.modules.iter().all(|m| m.items.iter().all(|i| is_understood(&i.item)));
    let incomplete = code
        .incomplete
        .clone()
        .or_else(|| (!understood).then(|| "it holds device code of a kind that is not understood".to_owned()));
    let mut counts = Counts::default();
    for m in &modules {
        counts.total += m.count;
        match m.fit {
            Fit::Native => counts.native += m.count,
            Fit::Compatible => counts.compatible += m.count,
            Fit::Jit => counts.jit += m.count,
            Fit::Missing | Fit::Blocked(_) => counts.missing += m.count,
            Fit::Uncertain(_) => {}
        }
    }
    let special = modules.iter().all(|m| !m.general);
    let sum = |of: &dyn Fn(&&Judged) -> bool| modules.iter().filter(of).map(|m| m.count).sum();
    // Unions say yes or no for a whole library: their many modules must not outweigh other files.
    let general = match code.union {
        true => (0, 0),
        false => (sum(&|m| m.general && m.is_short()), sum(&|m| m.general)),
    };
    let machine_code = code.modules.iter().flat_map(|m| &m.items).any(|i| is_machine_code(&i.item));
    let told = |verdict, cause| Some(Judgement { verdict, cause, counts, special, general, machine_code });
    if let Some(why) = incomplete {
        return told(Verdict::Unknown, Cause::Incomplete(why));
    }
    if modules.is_empty() {
        if Maker::ALL.iter().any(|maker| regions(code, *maker).next().is_some()) {
            return told(Verdict::Fail, Cause::OtherMakers);
        }
        let any = code.modules.iter().any(|m| !m.items.is_empty());
        return if any { told(Verdict::Warn, Cause::NeedsLinker) } else { None };
    }
    let (verdict, cause) = word(&modules, code.union);
    told(verdict, cause)
}

fn word(modules: &[Judged], union: bool) -> (Verdict, Cause) {
    let best = modules.iter().map(|m| m.fit).max().unwrap_or(Fit::Missing);
    match best {
        Fit::Missing => return (Verdict::Fail, Cause::NoImage),
        Fit::Blocked(block) => return (Verdict::Fail, Cause::Refused(block)),
        Fit::Uncertain(doubt) => return (Verdict::Warn, Cause::Uncertain(doubt)),
        Fit::Jit if union => return (Verdict::Slow, Cause::Jit { modules: 1, of: 1 }),
        Fit::Native | Fit::Compatible if union => return (Verdict::Ok, Cause::Fits),
        Fit::Jit | Fit::Compatible | Fit::Native => {}
    }
    let both = modules.iter().any(|m| m.general) && modules.iter().any(|m| !m.general);
    let judged = || modules.iter().filter(|m| m.general || !both);
    let of: u64 = judged().map(|m| m.count).sum();
    let short = || judged().filter(|m| m.is_short());
    let missing: u64 = short().map(|m| m.count).sum();
    if missing > 0 {
        let general = judged().any(|m| m.general);
        if !general && short().all(|m| m.fit == Fit::Missing) {
            return specials(modules, missing, of);
        }
        let block = short().find_map(|m| match m.fit {
            Fit::Blocked(block) => Some(block),
            _ => None,
        });
        if general && block.is_none() && missing * MISSED_FROM_ONE_IN < of {
            return (Verdict::Ok, Cause::SpecialsElsewhere { missing, of });
        }
        let verdict = if general && partly(missing, of) { Verdict::Warn } else { Verdict::Fail };
        return (verdict, Cause::Partly { missing, of, block });
    }
    if let Some(doubt) = judged().find_map(|m| match m.fit {
        Fit::Uncertain(doubt) => Some(doubt),
        _ => None,
    }) {
        return (Verdict::Warn, Cause::Uncertain(doubt));
    }
    let jit: u64 = judged().filter(|m| m.fit == Fit::Jit).map(|m| m.count).sum();
    if jit * SLOW_FROM_ONE_IN >= of && jit > 0 {
        return (Verdict::Slow, Cause::Jit { modules: jit, of });
    }
    let special_missing: u64 = modules.iter().filter(|m| m.is_short()).map(|m| m.count).sum();
    if special_missing > 0 {
        let total = modules.iter().map(|m| m.count).sum();
        return specials(modules, special_missing, total);
    }
    let cause = if jit > 0 { Cause::SomeJit { modules: jit, of } } else { Cause::Fits };
    (Verdict::Ok, cause)
}

/// Whether few enough of the general modules are short that the rest is of use.
fn partly(missing: u64, of: u64) -> bool {
    missing * FAILS_FROM_ONE_IN < of
}

/// Special modules are missing while others fit: by design, unless they are half of the code or more.
fn specials(modules: &[Judged], missing: u64, of: u64) -> (Verdict, Cause) {
    let entries: u64 = modules.iter().map(|m| m.entries).sum();
    let lost: u64 = modules.iter().filter(|m| m.is_short()).map(|m| m.entries).sum();
    if 2 * lost < entries {
        (Verdict::Ok, Cause::SpecialsElsewhere { missing, of })
    } else {
        (Verdict::Warn, Cause::MostlySpecial { missing, of })
    }
}

/// What a driver would be handed as one: a fatbin region, or all loose cubins of a file, which a library selects
/// from by itself.
struct Region<'a> {
    items: Vec<&'a Item>,
    count: u64,
    entries: u64,
    /// Cubins beside fatbins are kernels that a library picks by itself, with a fallback in the fatbins.
    picked: bool,
}

impl Region<'_> {
    fn judge(&self, host: &Host) -> Judged {
        let plain = |i: &&&Item| i.arch.sm().is_none_or(|a| a.feature == Feature::Plain);
        let code = self.items.iter().filter(|i| is_machine_code(i)).filter(plain);
        let archs: BTreeSet<Arch> = code.map(|i| i.arch).collect();
        let least = if host.maker() == Maker::Nvidia { GENERAL } else { GENERAL_OF_OTHERS };
        Judged {
            fit: module_fit(self.items.iter().copied(), host),
            count: self.count,
            entries: self.entries,
            general: archs.len() >= least && !self.picked,
        }
    }
}

/// Whether all that a file holds in such containers is one choice: a library or a runtime picks among them by itself.
/// SYCL's and OpenMP's compilers write one image for each target, of which the runtime takes the one that fits; which
/// kernels each holds is not read.
pub fn is_one_choice(container: Container) -> bool {
    match container {
        Container::Cubin
        | Container::CodeObject
        | Container::Zebin
        | Container::Sycl
        | Container::OffloadBinary => true,
        Container::Fatbin
        | Container::PtxText
        | Container::Bundle
        | Container::CompressedBundle
        | Container::Kpack => false,
    }
}

/// What there is for one maker's GPUs.
fn regions<'a>(code: &'a Code<'_>, maker: Maker) -> impl Iterator<Item = Region<'a>> {
    let own = move |i: &Item| loads(i) && i.arch.maker() == Some(maker);
    let loadable =
        move || code.modules.iter().filter(move |m| !m.relocatable && m.items.iter().any(|i| own(&i.item)));
    let together = move |m: &&Module| code.union || is_one_choice(m.container);
    let fatbins = loadable().any(|m| m.container == Container::Fatbin);
    let mut merged = Region { items: Vec::new(), count: 0, entries: 0, picked: fatbins && !code.union };
    for module in loadable().filter(together) {
        merged.items.extend(module.items.iter().map(|i| &i.item).filter(|i| own(i)));
        merged.count += module.count;
        merged.entries += module.entries();
    }
    let merged = (merged.count > 0).then_some(merged);
    let single = loadable().filter(move |m| !together(m)).map(move |m| Region {
        items: m.items.iter().map(|i| &i.item).filter(|i| own(i)).collect(),
        count: m.count,
        entries: m.entries(),
        picked: false,
    });
    single.chain(merged)
}

/// Whether a driver takes the item as it is, on some GPU.
pub fn loads(item: &Item) -> bool {
    let form = match item.form {
        Form::Sass | Form::Ptx | Form::CodeObject | Form::Spirv | Form::Native => true,
        Form::LtoIr | Form::TileIr | Form::Unknown => false,
    };
    form && item.arch.maker().is_some()
}

fn is_understood(item: &Item) -> bool {
    match item.form {
        Form::Unknown => false,
        Form::Sass | Form::Ptx | Form::LtoIr | Form::CodeObject | Form::Spirv | Form::Native => {
            item.arch.maker().is_some()
        }
        Form::TileIr => true,
    }
}

/// The word for a component: the worst of its files. A file made for other chips alone is excused when a sibling
/// serves this one; general modules that are short count over all files, so that one small library does not fail
/// a framework.
///
/// Files for other makers' GPUs alone count only where no file is for this maker's: backends lie beside each other.
pub fn component(files: &mut [Judgement]) -> Option<usize> {
    let other = |f: &Judgement| f.cause == Cause::OtherMakers;
    if !files.iter().all(other) {
        for file in files.iter_mut().filter(|f| other(f)) {
            file.verdict = Verdict::Ok;
        }
    }
    let serves = files.iter().any(|f| matches!(f.verdict, Verdict::Ok | Verdict::Slow));
    let natively = files.iter().any(|f| f.verdict == Verdict::Ok && f.counts.native + f.counts.compatible > 0);
    let (missing, of) = files.iter().fold((0, 0), |sum, f| (sum.0 + f.general.0, sum.1 + f.general.1));
    for file in files.iter_mut() {
        match (&file.cause, file.special) {
            (Cause::NoImage | Cause::MostlySpecial { .. }, true) if serves => {
                file.verdict = Verdict::Ok;
                file.cause = Cause::SiblingServes;
            }
            // vllm brings flash-attention 2 for sm_80 with PTX beside flash-attention 3 for Hopper.
            (Cause::Jit { modules, of }, true) if natively && file.machine_code => {
                file.verdict = Verdict::Ok;
                file.cause = Cause::SomeJit { modules: *modules, of: *of };
            }
            (Cause::NoImage, false) if partly(missing, of) => {
                file.verdict = Verdict::Warn;
                file.cause = Cause::Partly { missing, of, block: None };
            }
            (Cause::Partly { block, .. }, false) => {
                file.verdict = if partly(missing, of) { Verdict::Warn } else { Verdict::Fail };
                file.cause = Cause::Partly { missing, of, block: *block };
            }
            _ => {}
        }
    }
    (0..files.len()).min_by_key(|&i| (files[i].verdict, rank(&files[i].cause)))
}

/// Among equal words, the cause that says most.
fn rank(cause: &Cause) -> u8 {
    match cause {
        Cause::NoImage | Cause::OtherMakers | Cause::Elsewhere(_) => 0,
        Cause::Refused(_) => 1,
        Cause::Partly { .. } => 2,
        Cause::Incomplete(_) => 3,
        Cause::Jit { .. } | Cause::Uncertain(_) | Cause::MostlySpecial { .. } => 4,
        Cause::NeedsLinker => 5,
        Cause::SpecialsElsewhere { .. } | Cause::SiblingServes | Cause::SomeJit { .. } => 6,
        Cause::Fits => 7,
    }
}

/// The architectures of loadable code in few words: `sm_50 60 70 75 80 86 90, no PTX`, `gfx90a gfx942`; of one maker
/// where there is code for that, else of all.
pub fn summary<'a>(modules: impl IntoIterator<Item = &'a Module>, maker: Maker) -> String {
    let mut machine = BTreeSet::new();
    let mut text = BTreeSet::new();
    for module in modules.into_iter().filter(|m| !m.relocatable) {
        for item in module.items.iter().map(|i| &i.item).filter(|i| loads(i)) {
            if is_machine_code(item) {
                machine.insert(item.arch)
            } else {
                text.insert(item.arch)
            };
        }
    }
    let all = [&machine, &text];
    let has = |maker: Maker| all.iter().any(|set| set.iter().any(|a| a.maker() == Some(maker)));
    let told = Maker::ALL.into_iter().filter(|m| if has(maker) { *m == maker } else { has(*m) });
    let parts: Vec<String> = told
        .map(|maker| {
            let of = |set: &BTreeSet<Arch>| -> Vec<Arch> {
                set.iter().copied().filter(|a| a.maker() == Some(maker)).collect()
            };
            words(maker, &of(&machine), &of(&text))
        })
        .collect();
    if parts.is_empty() { "no loadable device code".to_owned() } else { parts.join(", ") }
}

fn words(maker: Maker, machine: &[Arch], text: &[Arch]) -> String {
    let list = |archs: &[Arch]| {
        let one = |a: &Arch| match a {
            Arch::Intel(ip) => ip.dotted(),
            other => other.to_string().replace("sm_", ""),
        };
        archs.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    match (maker, machine.is_empty(), text.is_empty()) {
        (Maker::Nvidia, false, true) => format!("sm_{}, no PTX", list(machine)),
        (Maker::Nvidia, true, _) => format!("no machine code, PTX {}", list(text)),
        (Maker::Nvidia, false, false) => format!("sm_{} and PTX {}", list(machine), list(text)),
        (Maker::Amd, _, true) => list(machine),
        (Maker::Intel, _, true) => format!("machine code for {}, no SPIR-V", list(machine)),
        (Maker::Amd | Maker::Intel, true, false) => "no machine code, SPIR-V".to_owned(),
        (Maker::Amd | Maker::Intel, false, false) => format!("{} and SPIR-V", list(machine)),
    }
}

#[cfg(test)]
mod tests;
