//! A report of a Dockerfile.

use super::super::lint::{LintGap, LintReport};
use super::*;

const DOCKERFILE: &str = r#"# syntax=docker/dockerfile:1
ARG CUDA=12.4.1
FROM nvidia/cuda:${CUDA}-devel-ubuntu22.04 AS build
ENV TORCH_CUDA_ARCH_LIST="8.0 8.6" \
    LD_LIBRARY_PATH=/opt/lib
RUN pip install --index-url https://download.pytorch.org/whl/cu118 torch==2.6.0 torchvision==0.21.0 \
    && git clone https://github.com/Dao-AILab/flash-attention \
    && cd flash-attention \
    && python setup.py install
"#;

fn place(line: usize, column: usize, end_line: usize, end_column: usize) -> FilePlace {
    FilePlace { file: "docker/Dockerfile.gpu".into(), line, column, end_line, end_column }
}

fn edit(at: FilePlace, text: &str) -> EditReport {
    EditReport {
        line: at.line,
        column: at.column,
        end_line: at.end_line,
        end_column: at.end_column,
        text: text.into(),
    }
}

/// A Dockerfile with findings of all kinds.
pub fn lint() -> LintReport {
    let archs = Finding {
        dockerfile: Some(place(4, 27, 4, 34)),
        label: "no 9.0, no PTX".into(),
        help: Some("add 9.0 to the list".into()),
        because: vec!["gpus.toml `NVIDIA H100`: 9.0, verified".into()],
        related: vec![Related { place: place(9, 8, 9, 31), message: "compiled for this list".into() }],
        fix: Some(FixReport {
            what: "add 9.0 to the list".into(),
            safe: false,
            edits: vec![edit(place(4, 34, 4, 34), " 9.0")],
        }),
        fingerprint: Some("5f0c".into()),
        ..finding(
            "arch-list-misses-target",
            Verdict::Fail,
            &["prod-h100"],
            "TORCH_CUDA_ARCH_LIST leaves out prod-h100 (9.0): flash-attention's kernels will not load there",
        )
    };
    let base = Finding {
        dockerfile: Some(place(3, 6, 3, 43)),
        related: vec![Related { place: place(2, 5, 2, 16), message: "12.4.1 is this default".into() }],
        confidence: Confidence::Medium,
        fingerprint: Some("a1".into()),
        ..finding("devel-in-final-stage", Verdict::Ok, &[], "the final stage ships the compilers of a devel image")
    };
    let wheel = Finding {
        dockerfile: Some(place(6, 29, 6, 71)),
        label: "built for CUDA 11.8".into(),
        because: (1..=5).map(|n| format!("pytorch.toml row {n}: a fact with its source")).collect(),
        fingerprint: Some("b2".into()),
        ..finding("wheel-index-without-target-arch", Verdict::Warn, &[], "cu118 wheels have no code for 10.0")
    };
    let path = Finding {
        dockerfile: Some(place(5, 5, 5, 29)),
        help: Some("keep what the base has set".into()),
        fix: Some(FixReport {
            what: "append the base's value".into(),
            safe: true,
            edits: vec![edit(place(5, 29, 5, 29), ":${LD_LIBRARY_PATH}")],
        }),
        fingerprint: Some("c3".into()),
        ..finding("ld-path-overwrite", Verdict::Warn, &[], "LD_LIBRARY_PATH is overwritten")
    };
    let accepted = Accepted { by: AcceptedBy::Comment, line: 1, reason: "kernels are compiled at start".into() };
    let ignored = Finding { accepted: Some(accepted), ..base.clone() };
    let alone = Finding {
        help: Some("remove it".into()),
        ..finding("waiver-unmatched", Verdict::Ok, &[], "the waiver of jit-at-start in line 7 matches no finding")
    };
    let found = [&base, &archs, &path, &wheel, &alone];
    let rules = found.iter().map(|f| RuleText {
        id: match f.rule.as_str() {
            "arch-list-misses-target" => "arch-list-misses-target",
            "devel-in-final-stage" => "devel-in-final-stage",
            "ld-path-overwrite" => "ld-path-overwrite",
            "waiver-unmatched" => "waiver-unmatched",
            _ => "wheel-index-without-target-arch",
        },
        severity: f.severity,
        summary: "What it says",
        page: "# a rule\n\n## Why\n",
        of_dockerfiles: f.rule != "waiver-unmatched",
    });
    LintReport {
        schema: 1,
        tool: super::base().tool,
        rules: rules.collect(),
        findings: vec![base, archs, path, wheel, alone],
        waived: vec![ignored],
        known: None,
        resolved: None,
        gaps: vec![LintGap {
            path: "docker/Dockerfile.gpu".into(),
            line: 6,
            offset: 177,
            why: "`requirements.txt` was not found".into(),
        }],
        policy: None,
        overruled: Vec::new(),
        sources: [("docker/Dockerfile.gpu".to_owned(), DOCKERFILE.into())].into(),
        base: String::new(),
    }
}
