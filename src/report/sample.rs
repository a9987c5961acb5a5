//! Reports for tests, made by hand.

mod dockerfile;

pub use self::dockerfile::lint;
use super::*;
use crate::model::{
    Accepted, AcceptedBy, Arch, Confidence, Container, Digest, EditReport, FileKind, FilePlace, Finding, FixReport,
    Form, Gap, GapEffect, ImagePath, LayerSummary, Manager, Package, Packing, Platform, Related, Stats, Verdict,
};

const TORCH: &str = "opt/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so";
const FLASH: &str = "opt/v/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so";

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn base() -> Report {
    Report {
        schema: 1,
        tool: Tool {
            name: "imagelint".into(),
            version: "0.1.0".into(),
            catalog: CatalogId { as_of: "2026-11-30".into(), digest: digest("catalog"), rules: None },
        },
        image: Some(ImageReport {
            reference: "127.0.0.1:5001/serve:2.7.0".into(),
            digest: Some(digest("manifest")),
            platform: Some(Platform::default()),
            size: 3_437_000_000,
            verdict: Verdict::Ok,
            min_driver: Some(MinDriver {
                version: "525.60.13".into(),
                cause: "CUDA 12 (torch 2.7.0+cu126)".into(),
            }),
            amd: None,
            arch_list: Some(
                ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"].map(String::from).to_vec(),
            ),
            layers: vec![LayerSummary {
                digest: Some(digest("layer")),
                diff_id: Some(digest("tar")),
                size: 3_437_000_000,
                created_by: Some("RUN pip install torch".into()),
                cached: None,
            }],
        }),
        targets: None,
        device_code: vec![
            code(TORCH, "torch", &["50", "60", "70", "75", "80", "86", "90", "90a"], None),
            code(FLASH, "flash-attn", &["80", "90"], Some("90")),
        ],
        libraries: vec![library(TORCH, "torch")],
        packages: Some(vec![Package::new(Manager::Pip, "torch", Some("2.7.0+cu126".into()))]),
        toolkits: Some(Vec::new()),
        compilers: Some(Vec::new()),
        findings: Vec::new(),
        waived: Vec::new(),
        known: None,
        resolved: None,
        plan: None,
        gaps: Vec::new(),
        sizes: None,
        policy: None,
        overruled: Vec::new(),
        stats: StatsReport {
            counts: Stats { bytes_read: 7_000_000_000, files: 41_234, elfs: 612 },
            seconds: None,
            stored_bytes_read: None,
        },
        rules: Vec::new(),
        base: String::new(),
        sources: std::collections::BTreeMap::new(),
    }
}

fn library(path: &str, component: &str) -> Library {
    Library {
        path: ImagePath::new(path),
        kind: FileKind::SharedObject,
        machine: Some("amd64".into()),
        soname: Some("libtorch_cuda.so".into()),
        component: Some(component.into()),
        rpath: None,
        runpath: Some("$ORIGIN:$ORIGIN/../../nvidia/cublas/lib".into()),
        needs: [
            "libc10_cuda.so",
            "libcudart.so.12",
            "libcublas.so.12",
            "libcudnn.so.9",
            "libtorch_cpu.so",
            "libc.so.6",
        ]
        .map(Need::named)
        .to_vec(),
        version: None,
        opens: Vec::new(),
    }
}

fn code(path: &str, component: &str, sass: &[&str], ptx: Option<&str>) -> DeviceCode {
    let row = |arch: &str, form: Form| ArchRow {
        arch: arch.parse::<Arch>().unwrap(),
        form,
        container: Container::Fatbin,
        entries: 240,
        bytes: 44_300_000,
        packing: Packing::Lz4,
        relocatable: false,
        isa: (form == Form::Ptx).then(|| "8.7".parse().unwrap()),
        toolkit: (form == Form::Sass).then(|| "12.6".parse().unwrap()),
        kind: None,
    };
    let mut archs: Vec<ArchRow> = sass.iter().map(|a| row(a, Form::Sass)).collect();
    archs.extend(ptx.map(|a| row(a, Form::Ptx)));
    DeviceCode {
        not_judged: None,
        path: ImagePath::new(path),
        layer: Some(digest("layer")),
        component: Some(component.into()),
        format: FileKind::SharedObject,
        modules: 240,
        bytes: archs.iter().map(|a| a.bytes).sum(),
        archs,
    }
}

fn component(name: &str, version: &str, role: Role, verdict: Verdict, why: &str) -> ComponentReport {
    let missing = if verdict == Verdict::Ok { 0 } else { 240 };
    let modules = ModuleCounts { total: 240, native: 240 - missing, missing, ..ModuleCounts::default() };
    let path = ImagePath::new(TORCH);
    ComponentReport {
        name: name.into(),
        version: Some(version.into()),
        role,
        verdict,
        why: why.into(),
        files: vec![path.clone()],
        modules,
        by_file: vec![FileVerdict { path, verdict, why: why.into(), modules }],
    }
}

fn target(name: &str, gpu: &str, arch: &str, driver: Option<&str>, verdict: Verdict, why: &str) -> TargetReport {
    TargetReport {
        name: name.into(),
        gpu: gpu.into(),
        arch: arch.parse().unwrap(),
        driver: driver.map(String::from),
        virtualisation: None,
        verdict,
        why: why.into(),
        required: true,
        platform: Some(Platform::default()),
        components: Vec::new(),
    }
}

fn finding(rule: &str, verdict: Verdict, targets: &[&str], message: &str) -> Finding {
    Finding {
        targets: targets.iter().map(|t| (*t).to_owned()).collect(),
        ..Finding::new(rule, verdict.severity(), verdict, message)
    }
}

/// Three targets: one fails on torch, one on an extension, one is well.
pub fn failing() -> Report {
    let mut report = base();
    let none = "no kernel image is available (209)";
    let mut targets = vec![
        target(
            "prod-a100",
            "NVIDIA A100-SXM4-80GB",
            "sm_80",
            Some("535.183.01"),
            Verdict::Ok,
            "native code in every component",
        ),
        target(
            "edge-5090",
            "NVIDIA GeForce RTX 5090",
            "sm_120",
            Some("575.51.03"),
            Verdict::Fail,
            "torch 2.7.0+cu126 has code for 5.0 to 9.0 and no PTX; this GPU needs 12.0",
        ),
        target(
            "old-t4",
            "Tesla T4",
            "sm_75",
            Some("535"),
            Verdict::Warn,
            "flash-attn 2.7.4 has no code for 7.5; what does not use it runs",
        ),
    ];
    for (i, target) in targets.iter_mut().enumerate() {
        let word = |bad: bool| if bad { Verdict::Fail } else { Verdict::Ok };
        let why = |bad: bool| if bad { none } else { "every module fits" };
        target.components = vec![
            component("torch", "2.7.0+cu126", Role::Core, word(i == 1), why(i == 1)),
            component("flash-attn", "2.7.4", Role::Optional, word(i > 0), why(i > 0)),
        ];
        for n in 0..14 {
            let name = format!("nvidia-library-{n}-cu12");
            target.components.push(component(&name, "12.6.4", Role::Optional, Verdict::Ok, "every module fits"));
        }
        for n in 0..2 {
            let name = format!("test-binary-{n}");
            target.components.push(component(&name, "1", Role::Idle, word(i == 1), why(i == 1)));
        }
    }
    report.targets = Some(targets);
    let mut torch = finding(
        "no-device-code-for-target",
        Verdict::Fail,
        &["edge-5090"],
        "torch 2.7.0+cu126 has code for 5.0 to 9.0 and no PTX; NVIDIA GeForce RTX 5090 needs 12.0",
    );
    torch.help = Some("take a cu128 or later build (2.7 or newer), or leave edge-5090 out".into());
    torch.component = Some("torch".into());
    torch.path = Some(ImagePath::new(TORCH));
    torch.layer = Some(digest("layer"));
    torch.because = vec!["gpus.toml `NVIDIA GeForce RTX 5090`: developer.nvidia.com/cuda-gpus, verified".into()];
    let mut flash = finding(
        "no-device-code-for-target",
        Verdict::Warn,
        &["edge-5090", "old-t4"],
        "flash-attn 2.7.4 has code for 8.0 and 9.0 only",
    );
    flash.path = Some(ImagePath::new(FLASH));
    flash.confidence = Confidence::Medium;
    let note =
        finding("compressed-device-code", Verdict::Ok, &[], "device code is packed with zstd in 3 libraries");
    report.findings = vec![torch, note, flash];
    report.plan = Some(Plan {
        steps: vec![Step {
            resolves: vec!["edge-5090".into()],
            env: vec![("TORCH_CUDA_ARCH_LIST".into(), "8.0;12.0".into())],
            command: Some("pip install torch==2.7.0 --index-url https://download.pytorch.org/whl/cu128".into()),
            because: vec!["pytorch.toml 2.7.0+cu128".into()],
            ..Step::advice(
                StepKind::ChangeWheel,
                "torch".into(),
                "torch: take the cu128 build of 2.7.0, which has code for 12.0".into(),
            )
        }],
        unresolved: vec!["flash-attn has no release with code for 7.5".into()],
        patch: None,
        ..Plan::default()
    });
    report.gaps = vec![Gap {
        path: Some(ImagePath::new("opt/models/kernels.bin")),
        layer: None,
        offset: Some(0x2_0040),
        why: "an entry of kind 0x40 is not understood".into(),
        effect: GapEffect::None,
    }];
    if let Some(image) = &mut report.image {
        image.verdict = Verdict::Fail;
    }
    report
}

/// A fleet of thirty targets.
pub fn wide() -> Report {
    let mut report = failing();
    let kinds = [
        ("NVIDIA A100-SXM4-80GB", "sm_80", Verdict::Ok),
        ("NVIDIA H100 80GB HBM3", "sm_90", Verdict::Ok),
        ("Tesla T4", "sm_75", Verdict::Warn),
        ("NVIDIA GeForce RTX 5090", "sm_120", Verdict::Fail),
        ("NVIDIA B200", "sm_100", Verdict::Slow),
    ];
    let mut targets = Vec::new();
    for n in 0..30 {
        let (gpu, arch, verdict) = kinds[n % kinds.len()];
        let name = format!("pool-{n:02}-{}", gpu.rsplit([' ', '-']).next().unwrap_or("").to_lowercase());
        let mut t = target(&name, gpu, arch, (n % 3 > 0).then_some("570.86.15"), verdict, "");
        let flash = if verdict == Verdict::Ok { Verdict::Ok } else { Verdict::Fail };
        t.required = n != 7;
        t.components = vec![
            component("torch", "2.7.0+cu126", Role::Core, verdict, ""),
            component("flash-attn", "2.7.4", Role::Optional, flash, ""),
        ];
        // Some pools differ in one component each, so that joining columns alone does not make them fit.
        if n < 12 {
            t.components.push(component(&format!("extension-{n}"), "1.0", Role::Optional, Verdict::Slow, ""));
        }
        targets.push(t);
    }
    report.targets = Some(targets);
    report
}

/// No target: coverage alone.
pub fn untargeted() -> Report {
    let mut report = base();
    report.device_code.push(code(
        "opt/app/kernels/very/deep/in/a/tree/that/does/not/end/soon/my_kernels.so",
        "",
        &["90a"],
        None,
    ));
    if let Some(last) = report.device_code.last_mut() {
        last.component = None;
        last.archs[0].relocatable = true;
    }
    report.device_code.push(code(
        "opt/lib/libcublasLt.so.12",
        "nvidia-cublas-cu12",
        &["75", "80", "90", "100f", "120"],
        Some("120"),
    ));
    report
}

/// What `inspect` makes of two files.
pub fn files() -> Report {
    let mut report = base();
    report.image = None;
    report.packages = None;
    let mut plain = library("libplain.so", "x");
    plain.soname = None;
    plain.runpath = None;
    plain.needs.truncate(1);
    report.libraries.push(plain);
    if let Some(code) = report.device_code.first_mut() {
        let mut odd = code.archs[0].clone();
        (odd.form, odd.kind, odd.packing, odd.toolkit) = (Form::Unknown, Some(0x40), Packing::Unknown, None);
        code.archs.push(odd);
        let mut relocatable = code.archs[7].clone();
        relocatable.relocatable = true;
        code.archs.push(relocatable);
    }
    report.gaps = failing().gaps;
    report
}

/// Names and messages that try to drive the terminal or to break the layout.
pub fn hostile() -> Report {
    let mut report = failing();
    let evil = "\x1b[2J\x1b]0;owned\x07\nok  prod\r\t\u{202e}日本語\u{9b}31m".to_owned();
    let long = "x".repeat(300);
    if let Some(image) = &mut report.image {
        image.reference = format!("{evil}{long}");
        image.min_driver = Some(MinDriver { version: evil.clone(), cause: evil.clone() });
        image.arch_list = Some(vec![evil.clone(), long.clone()]);
    }
    for target in report.targets.iter_mut().flatten() {
        target.name = format!("{evil}{}", target.name);
        target.gpu.push_str(&evil);
        target.driver = Some(evil.clone());
        target.why = format!("{long} {evil}");
        for c in &mut target.components {
            c.name.push_str(&evil);
            c.version = Some(long.clone());
            c.why = evil.clone();
            c.by_file[0].path = ImagePath::new(&evil);
        }
    }
    for f in &mut report.findings {
        f.rule.push_str(&evil);
        f.message = format!("{long}{evil}");
        f.help = Some(evil.clone());
        f.path = Some(ImagePath::new(evil.as_bytes()));
        f.because = vec![evil.clone()];
        f.targets.push(evil.clone());
    }
    for code in &mut report.device_code {
        code.component = Some(format!("{evil}{long}"));
        code.archs[0].arch = format!("sm_{}", u32::MAX).parse().unwrap();
    }
    for l in &mut report.libraries {
        l.path = ImagePath::new(evil.as_bytes());
        l.machine = Some(evil.clone());
        l.soname = Some(evil.clone());
        l.rpath = Some(long.clone());
        l.needs.push(Need::named(&evil));
    }
    if let Some(plan) = &mut report.plan {
        plan.unresolved.push(evil.clone());
        plan.steps[0].summary = evil.clone();
    }
    report.gaps.push(Gap { why: format!("{evil}{long}"), ..report.gaps[0].clone() });
    report
}

/// The same fleet in four kinds: joined columns make it fit anywhere.
pub fn kinds() -> Report {
    let mut report = wide();
    for target in report.targets.iter_mut().flatten() {
        target.components.truncate(2);
    }
    report
}
