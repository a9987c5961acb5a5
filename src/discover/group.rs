//! Machines into targets: one for all that are judged alike.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, FoundLeft, FoundTarget, Kind, Left, Machine, Seen, Sharing};
use crate::catalog::Catalog;
use crate::model::{Platform, Runtime, Start, Virtualisation};

/// Groups machines into targets. Names follow from what a target is, not from what else there is, so they stay when
/// machines come and go.
pub fn group(machines: &[Machine], catalog: &Catalog) -> Found {
    let mut targets: BTreeMap<String, (Kind, BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    let mut left: BTreeMap<Left, BTreeSet<String>> = BTreeMap::new();
    let mut without_gpu = 0;
    for machine in machines {
        without_gpu += usize::from(machine.seen.is_empty());
        for seen in &machine.seen {
            match seen {
                Seen::Gpu { kind, remarks } => {
                    let row = targets
                        .entry(name(kind, catalog))
                        .or_insert_with(|| (kind.clone(), BTreeSet::new(), BTreeSet::new()));
                    row.1.insert(machine.name.clone());
                    row.2.extend(remarks.iter().cloned());
                }
                Seen::LeftOut(what) => {
                    left.entry(what.clone()).or_default().insert(machine.name.clone());
                }
            }
        }
    }
    let targets = targets.into_iter().map(|(name, (kind, machines, remarks))| FoundTarget {
        name,
        kind,
        machines: machines.into_iter().collect(),
        remarks: remarks.into_iter().collect(),
    });
    let left_out =
        left.into_iter().map(|(left, machines)| FoundLeft { left, machines: machines.into_iter().collect() });
    Found { targets: targets.collect(), left_out: left_out.collect(), without_gpu }
}

/// The fleet of one machine, which needs no name.
pub fn one(seen: Vec<Seen>, catalog: &Catalog) -> Found {
    let mut found = group(&[Machine { name: String::new(), seen }], catalog);
    found.targets.iter_mut().for_each(|t| t.machines.clear());
    found.left_out.iter_mut().for_each(|l| l.machines.clear());
    found
}

/// "a100-mig@535.183.01": all that a target is told apart by, but for what its GPU says already.
pub(super) fn name(kind: &Kind, catalog: &Catalog) -> String {
    let mut out = short(&kind.gpu);
    match kind.virtualisation {
        Virtualisation::None => {}
        Virtualisation::Mig => out.push_str("-mig"),
        Virtualisation::Vgpu => out.push_str("-vgpu"),
        Virtualisation::Passthrough => out.push_str("-passthrough"),
    }
    match kind.sharing {
        None => {}
        Some(Sharing::TimeSlicing | Sharing::Shared) => out.push_str("-shared"),
        Some(Sharing::Mps) => out.push_str("-mps"),
    }
    match kind.runtime {
        Runtime::Toolkit | Runtime::Tegra => {}
        Runtime::Legacy => out.push_str("-legacy"),
        Runtime::Cdi => out.push_str("-cdi"),
        Runtime::Gke => out.push_str("-gke"),
        Runtime::Wsl => out.push_str("-wsl"),
    }
    if kind.start == Start::Env {
        out.push_str("-env");
    }
    // Grace and Jetson are Arm by themselves.
    let own = catalog.gpu(&kind.gpu).map(|g| g.platforms().to_vec()).unwrap_or_default();
    if let Some(platform) = kind.platform.as_ref().filter(|p| !own.contains(p) && **p != Platform::default()) {
        out.push('-');
        out.push_str(&platform.architecture);
    }
    if let Some(driver) = &kind.driver {
        out.push('@');
        out.push_str(driver);
    }
    out
}

/// "NVIDIA GeForce RTX 4090" as "rtx-4090".
fn short(gpu: &str) -> String {
    let mut words: Vec<String> = gpu
        .split(|c: char| c.is_whitespace() || matches!(c, '-' | '(' | ')'))
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    let makers = ["nvidia", "geforce", "tesla", "amd", "instinct", "radeon", "intel", "data", "center", "gpu"];
    for maker in makers {
        if words.len() > 1 && words.first().is_some_and(|w| w == maker) {
            words.remove(0);
        }
    }
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str, kind: Kind) -> Machine {
        Machine { name: name.into(), seen: vec![Seen::Gpu { kind, remarks: vec!["label".into()] }] }
    }

    #[test]
    fn machines_that_are_judged_alike_are_one_target() {
        let a100 = Kind { driver: Some("535.183.01".into()), ..Kind::of("NVIDIA A100") };
        let mig = Kind { virtualisation: Virtualisation::Mig, ..a100.clone() };
        let left = Left { what: "x".into(), why: "y".into(), gpu: None };
        let machines = [
            machine("b", a100.clone()),
            machine("a", a100.clone()),
            machine("c", mig.clone()),
            Machine { name: "d".into(), seen: Vec::new() },
            Machine { name: "e".into(), seen: vec![Seen::LeftOut(left.clone()), Seen::LeftOut(left)] },
        ];
        let found = group(&machines, Catalog::embedded());
        let names: Vec<&str> = found.targets.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["a100-mig@535.183.01", "a100@535.183.01"]);
        assert_eq!(found.targets[1].machines, ["a", "b"]);
        assert_eq!((found.left_out.len(), found.without_gpu), (1, 1));
        let mut reversed = machines.clone();
        reversed.reverse();
        assert_eq!(group(&reversed, Catalog::embedded()), found);
    }

    #[test]
    fn names_say_what_tells_targets_apart() {
        let of = |kind: &Kind| name(kind, Catalog::embedded());
        assert_eq!(of(&Kind::of("NVIDIA GeForce RTX 4090")), "rtx-4090");
        assert_eq!(of(&Kind::of("sm_90")), "sm_90");
        assert_eq!(of(&Kind::of("AMD Instinct MI300X")), "mi300x");
        assert_eq!(of(&Kind::of("AMD Radeon RX 7900 XTX")), "rx-7900-xtx");
        assert_eq!(of(&Kind::of("Intel Data Center GPU Max 1550")), "max-1550");
        assert_eq!(of(&Kind::of("Jetson T5000 (AGX Thor)")), "jetson-t5000-agx-thor");
        let kind = Kind { sharing: Some(Sharing::TimeSlicing), runtime: Runtime::Gke, ..Kind::of("NVIDIA L4") };
        assert_eq!(of(&kind), "l4-shared-gke");
        let arm = |gpu: &str| Kind { platform: Some(Platform::linux("arm64")), ..Kind::of(gpu) };
        assert_eq!(of(&arm("NVIDIA GH200")), "gh200");
        assert_eq!(of(&arm("NVIDIA L4")), "l4-arm64");
        assert_eq!(of(&Kind { platform: Some(Platform::linux("amd64")), ..Kind::of("NVIDIA L4") }), "l4");
    }
}
