//! `nvidia-smi --query-gpu=… --format=csv`, as it is printed.

use super::product::product;
use super::{Kind, Left, Seen, judged};
use crate::catalog::Catalog;
use crate::model::{Capability, DriverVersion, Platform, Runtime, SmArch, Virtualisation};

/// What is asked of nvidia-smi, newest form first: drivers before 510 know no `compute_cap`, those before 450 no MIG.
pub const QUERIES: [&str; 3] = [
    "name,driver_version,compute_cap,mig.mode.current",
    "name,driver_version,mig.mode.current",
    "name,driver_version",
];

/// Most GPUs of one host.
const MOST: usize = 1_024;

/// The GPUs of such a text; fields are known by what they look like, a heading is passed over. Nothing where no line
/// is of that form.
pub fn gpus(text: &str, runtime: Runtime, platform: Option<&Platform>, catalog: &Catalog) -> Vec<Seen> {
    text.lines().filter_map(|line| gpu(line.trim(), runtime, platform, catalog)).take(MOST).collect()
}

fn gpu(line: &str, runtime: Runtime, platform: Option<&Platform>, catalog: &Catalog) -> Option<Seen> {
    let mut fields = line.split(',').map(str::trim);
    let name = fields.next().filter(|n| !n.is_empty() && *n != "name" && !n.starts_with(['+', '|']))?;
    let (mut driver, mut capability, mut mig) = (None::<DriverVersion>, None::<Capability>, false);
    for field in fields {
        if field.eq_ignore_ascii_case("enabled") {
            mig = true;
        } else if let Ok(version) = field.parse::<DriverVersion>() {
            driver = Some(version);
        } else if field.contains('.')
            && let Ok(told) = field.parse()
        {
            capability = Some(told);
        }
    }
    // What has no driver's version is no line of such an answer.
    let driver = driver?;
    let product = product(name);
    let told = capability.map(|c| SmArch::from(c).to_string());
    let by_arch = |left: Left| match &told {
        Some(arch) => judged(catalog, arch).map_err(|_| left),
        None => Err(left),
    };
    let gpu = match judged(catalog, &product.name) {
        Ok(gpu) if capability.is_some_and(|c| catalog.gpu(&gpu).is_ok_and(|g| g.device != c.into())) => {
            told.clone().unwrap_or(gpu)
        }
        Ok(gpu) => gpu,
        Err(left) => match by_arch(left) {
            Ok(gpu) => gpu,
            Err(left) => return Some(Seen::LeftOut(left)),
        },
    };
    let virtualisation = if mig { Virtualisation::Mig } else { product.virtualisation };
    let kind = Kind {
        driver: Some(driver.to_string()),
        runtime,
        virtualisation,
        platform: platform.cloned(),
        ..Kind::of(gpu)
    };
    Some(Seen::Gpu { kind, remarks: vec![format!("nvidia-smi: {name}")] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, Virtualisation)> {
        let of = |seen: Seen| match seen {
            Seen::Gpu { kind, .. } => (kind.gpu, kind.driver.unwrap_or_default(), kind.virtualisation),
            Seen::LeftOut(left) => (left.what, left.why, Virtualisation::None),
        };
        gpus(text, Runtime::Toolkit, None, Catalog::embedded()).into_iter().map(of).collect()
    }

    #[test]
    fn answers_of_nvidia_smi() {
        let text = "name, driver_version, compute_cap, mig.mode.current\n\
                    NVIDIA A100-SXM4-80GB, 535.183.01, 8.0, Enabled\n\
                    NVIDIA A100-SXM4-80GB, 535.183.01, 8.0, Disabled\r\n\
                    NVIDIA GeForce RTX 4090, 550.54.15, 8.9, [N/A]\n\
                    NVIDIA H1000 Future, 999.10, 9.0, [N/A]\n\
                    NVIDIA A10-24Q, 550.90.07, 8.6, [N/A]\n";
        let got = read(text);
        let short: Vec<(&str, &str, Virtualisation)> =
            got.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), *c)).collect();
        assert_eq!(
            short,
            [
                ("NVIDIA A100", "535.183.01", Virtualisation::Mig),
                ("NVIDIA A100", "535.183.01", Virtualisation::None),
                ("NVIDIA GeForce RTX 4090", "550.54.15", Virtualisation::None),
                ("sm_90", "999.10", Virtualisation::None),
                ("NVIDIA A10", "550.90.07", Virtualisation::Vgpu),
            ]
        );
        assert_eq!(read("Tesla V100-SXM2-16GB, 418.226.00\n")[0].0, "Tesla V100");
        assert!(read("NVIDIA Unheard Of, 535.10\n")[0].1.contains("no GPU that the catalog knows"));
    }

    #[test]
    fn other_texts_are_no_answers() {
        for text in [
            "",
            "No devices were found\n",
            "NVIDIA-SMI has failed because it couldn't communicate",
            ",,,\n",
            "name, driver_version\n",
            "| NVIDIA-SMI 535.183.01, 535.183.01 |",
        ] {
            assert!(read(text).is_empty(), "{text}");
        }
        assert_eq!(read(&"A100, 535\n".repeat(5_000)).len(), MOST);
    }
}
