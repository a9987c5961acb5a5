//! The report's rows about libraries and compilers.

use super::versions;
use crate::catalog::Catalog;
use crate::lint::compilers::newest_target;
use crate::lint::report::component_name;
use crate::model::{Evidence, Machine, Outcome, escape};
use crate::report::{Compiler, Library, Need};

/// One row per ELF file.
pub fn rows(evidence: &Evidence, catalog: &Catalog) -> Vec<Library> {
    let text = |t: &Option<String>| t.as_ref().map(|t| escape(t.as_bytes()));
    let elfs = evidence.files.iter().enumerate().filter(|(_, f)| f.facts.kind.is_elf());
    elfs.map(|(index, file)| {
        let elf = file.facts.elf.as_ref();
        let loads = evidence.loads_of(index);
        let needs = match loads {
            Some(loads) => loads.needs.iter().map(need).collect(),
            None => elf.iter().flat_map(|e| &e.needed).map(|n| Need::named(&escape(n.as_bytes()))).collect(),
        };
        Library {
            path: file.path.clone(),
            kind: file.facts.kind,
            machine: elf.map(|e| {
                Machine(e.machine).platform().map_or_else(|| format!("e_machine {}", e.machine), str::to_owned)
            }),
            soname: elf.and_then(|e| text(&e.soname)),
            component: component_name(evidence, file),
            rpath: elf.and_then(|e| text(&e.rpath)),
            runpath: elf.and_then(|e| text(&e.runpath)),
            version: versions::of(evidence, file, catalog),
            needs,
            opens: loads.iter().flat_map(|l| &l.opens).map(need).collect(),
        }
    })
    .collect()
}

fn need(need: &crate::model::Need) -> Need {
    let (found, why) = match &need.outcome {
        Outcome::Found { path, law } => (Some(path.clone()), law.to_string()),
        Outcome::Driver => (None, "comes from the host's driver".to_owned()),
        Outcome::Missing { refused: Some((path, why)), .. } => (None, format!("{path}: {why}")),
        Outcome::Missing { ldconfig: Some(path), .. } => {
            (None, format!("not in ld.so.cache, which is stale: ldconfig would find {path}"))
        }
        Outcome::Missing { .. } => (None, "not found".to_owned()),
    };
    Need { soname: escape(need.name.as_bytes()), found, why: Some(why) }
}

/// Compilers of device code, by path.
pub fn compilers(evidence: &Evidence, catalog: &Catalog) -> Vec<Compiler> {
    let tools = evidence.files.iter().filter_map(|f| Some((f, f.facts.tool?)));
    tools
        .map(|(file, tool)| Compiler {
            path: file.path.clone(),
            kind: tool.kind,
            version: tool.cuda,
            newest_target: newest_target(file, catalog),
            component: component_name(evidence, file),
        })
        .collect()
}
