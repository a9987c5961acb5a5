//! A Dockerfile beside the scanned image that was built from it: what was found in a layer points at the line that
//! made the layer, and what was measured wins over what the file lets expect.

use std::collections::BTreeMap;

use super::report::Teller;
use super::{CHECKS, FileReport, Needs, instructions_of_layers};
use crate::dockerfile::reading::Reading;
use crate::model::{Evidence, Finding, Verdict};
use crate::report::Report;

/// Points what was found in layers at the lines of the file, by its `name`, that made them.
pub fn point(report: &mut Report, evidence: &[Evidence], reading: &Reading, name: &str) {
    let made = makers(evidence, reading);
    let teller = Teller { name, document: &reading.document };
    for finding in report.findings.iter_mut().chain(&mut report.waived) {
        let layer = finding.layer.as_ref().map(ToString::to_string);
        let maker = layer.and_then(|l| made.get(&l)).and_then(|at| reading.instruction(*at));
        if let Some(instruction) = maker.filter(|_| finding.dockerfile.is_none()) {
            finding.dockerfile = Some(teller.place(instruction.span));
        }
    }
}

/// Drops what the file alone let expect of targets that its image was measured to run on.
pub fn measured(file: &mut FileReport, report: &Report) {
    let runs: Vec<String> =
        report.targets.iter().flatten().filter(|t| t.verdict == Verdict::Ok).map(|t| t.name.clone()).collect();
    file.findings.retain_mut(|finding| stands(finding, &runs));
}

/// What only a prediction for targets says is not said of those that the image was measured to run on.
fn stands(finding: &mut Finding, runs: &[String]) -> bool {
    let predicts = |needs: Needs| matches!(needs, Needs::Target | Needs::AmdTarget | Needs::Driver);
    let predicted = CHECKS.iter().any(|c| c.id == finding.rule && predicts(c.needs));
    if !predicted || finding.targets.is_empty() {
        return true;
    }
    finding.targets.retain(|t| !runs.contains(t));
    !finding.targets.is_empty()
}

/// The instruction that made each layer, by the layer's digest.
fn makers(evidence: &[Evidence], reading: &Reading) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for image in evidence.iter().map(|e| &e.image) {
        let steps: Vec<Option<String>> = image.layers.iter().map(|l| l.created_by.clone()).collect();
        for (layer, instruction) in image.layers.iter().zip(instructions_of_layers(reading, &steps)) {
            if let (Some(digest), Some(instruction)) = (&layer.digest, instruction) {
                out.insert(digest.to_string(), instruction);
            }
        }
    }
    out
}
