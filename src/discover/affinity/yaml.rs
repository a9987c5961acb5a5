//! A selection as YAML: for Kubernetes' scheduler, and for Node Feature Discovery.

use std::fmt::Write;

use super::super::toml::plain;
use super::{Expr, Op, Selection, Term};

/// A part of a Pod, `spec.affinity.nodeAffinity`. `head`: comments on top.
pub fn node_affinity(selection: &Selection, head: &[String]) -> String {
    let mut out = comments(selection, head);
    out.push_str(
        "spec:\n  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        \
         nodeSelectorTerms:\n",
    );
    for term in &selection.terms {
        comment(&mut out, "          ", &term.targets.join(", "));
        out.push_str("          - matchExpressions:\n");
        for e in &term.all {
            let _ = writeln!(out, "              - key: {}\n                operator: {}", e.key, e.op.word());
            if !e.values.is_empty() {
                let _ = writeln!(out, "                values: {}", list(&e.values));
            }
        }
    }
    out
}

/// The specification of Node Feature Discovery's image compatibility, v1alpha1: labels that GPU Feature Discovery hands
/// to it. None, where no term is of such labels alone.
pub fn compatibility(selection: &Selection, head: &[String]) -> Option<String> {
    let terms: Vec<&Term> = selection.terms.iter().filter(|t| features(t).is_some()).collect();
    if terms.is_empty() {
        return None;
    }
    let mut out = comments(selection, head);
    let told = |name: &String| terms.iter().any(|t| t.targets.contains(name));
    let mut untold: Vec<&String> = selection.terms.iter().flat_map(|t| &t.targets).filter(|n| !told(n)).collect();
    untold.dedup();
    for name in untold {
        comment(&mut out, "", &format!("Left out, {name}: only labels that the cloud writes tell its nodes"));
    }
    out.push_str(
        "version: v1alpha1\ncompatibilities:\n  - description: GPUs and drivers that imagelint judged the image to run on\n    \
         rules:\n      - name: GPU and driver\n        matchAny:\n",
    );
    for term in terms {
        comment(&mut out, "          ", &term.targets.join(", "));
        out.push_str(
            "          - matchFeatures:\n              - feature: local.label\n                matchExpressions:\n",
        );
        for e in features(term).unwrap_or_default() {
            let _ = write!(out, "                  {}: {{op: {}", e.key, e.op.word());
            if !e.values.is_empty() {
                let _ = write!(out, ", value: {}", list(&e.values));
            }
            out.push_str("}\n");
        }
    }
    Some(out)
}

/// What of a term Node Feature Discovery knows. The processor's architecture is the image's own matter; of what only
/// clouds write, and of labels that may be missing, it knows nothing (there, `NotIn` asks for the label to be there).
fn features(term: &Term) -> Option<Vec<&Expr>> {
    let (own, rest): (Vec<&Expr>, Vec<&Expr>) = term.all.iter().partition(|e| e.key.starts_with("nvidia.com/"));
    let told = |e: &&Expr| e.op != Op::NotIn;
    (!own.is_empty() && rest.iter().all(|e| e.key == super::keys::ARCH) && own.iter().all(told) && named(&own))
        .then_some(own)
}

/// Whether any label has to be there.
fn named(all: &[&Expr]) -> bool {
    all.iter().any(|e| e.op != Op::DoesNotExist)
}

impl Op {
    fn word(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Gt => "Gt",
            Self::Lt => "Lt",
        }
    }
}

fn comments(selection: &Selection, head: &[String]) -> String {
    let mut out = String::new();
    for line in head {
        comment(&mut out, "", line);
    }
    for (name, why) in &selection.left_out {
        comment(&mut out, "", &format!("Left out, {name}: {why}"));
    }
    for note in &selection.notes {
        comment(&mut out, "", note);
    }
    out
}

/// Nothing that a name or an image says may end the comment.
fn comment(out: &mut String, indent: &str, text: &str) {
    let _ = writeln!(out, "{indent}# {}", plain(text).trim_end());
}

/// Texts in double quotes: what JSON writes is YAML.
fn list(values: &[String]) -> String {
    let quoted = values.iter().map(|v| serde_json::Value::from(v.as_str()).to_string());
    format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
}
