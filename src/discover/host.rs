//! A host's own files: the driver's in /proc, AMD's topology and the display devices in /sys.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::product::product;
use super::{Kind, Left, Seen, judged, other};
use crate::catalog::Catalog;
use crate::model::{DriverVersion, GpuClass, Platform, Runtime};

/// Most of one file: all of them are short.
const MOST_BYTES: u64 = 64 << 10;
/// Most entries of one folder.
const MOST_ENTRIES: usize = 1_024;

/// A host, seen from its root folder.
#[derive(Debug)]
pub struct Host<'a> {
    root: PathBuf,
    platform: Option<Platform>,
    catalog: &'a Catalog,
}

impl<'a> Host<'a> {
    /// `platform`: of the host's processor, where it is known.
    pub fn new(root: impl Into<PathBuf>, platform: Option<Platform>, catalog: &'a Catalog) -> Self {
        Self { root: root.into(), platform, catalog }
    }

    /// How a container would get this host's GPU, as far as the host's kind decides that.
    pub fn runtime(&self) -> Runtime {
        let kernel = self.text("proc/sys/kernel/osrelease").unwrap_or_default().to_ascii_lowercase();
        if kernel.contains("microsoft") || self.root.join("dev/dxg").exists() {
            return Runtime::Wsl;
        }
        match self.tegra().is_some() {
            true => Runtime::Tegra,
            false => Runtime::Toolkit,
        }
    }

    /// Tegra's model, "NVIDIA Jetson AGX Orin Developer Kit".
    fn tegra(&self) -> Option<String> {
        let compatible = self.text("proc/device-tree/compatible").unwrap_or_default();
        let is = compatible.contains("nvidia,tegra") || self.root.join("etc/nv_tegra_release").is_file();
        is.then(|| {
            self.text("proc/device-tree/model").unwrap_or_default().trim_matches(['\0', ' ', '\n']).to_owned()
        })
    }

    /// GPUs of NVIDIA as the kernel's driver shows them; for hosts where nvidia-smi does not run.
    pub fn nvidia(&self) -> Vec<Seen> {
        if let Some(model) = self.tegra() {
            return vec![self.jetson(&model)];
        }
        let driver = self.text("proc/driver/nvidia/version").and_then(|text| driver(&text));
        let mut out = Vec::new();
        for folder in self.entries("proc/driver/nvidia/gpus") {
            let Some(text) = self.read(&folder.join("information")) else { continue };
            let model = text.lines().find_map(|l| l.strip_prefix("Model:")).map_or("", str::trim);
            let product = product(model);
            out.push(match judged(self.catalog, &product.name) {
                Err(left) => Seen::LeftOut(left),
                Ok(gpu) => {
                    let mut remarks = vec![format!("/proc/driver/nvidia: {model}; MIG is not told there")];
                    if driver.is_none() {
                        remarks.push("driver: /proc/driver/nvidia/version does not tell it".to_owned());
                    }
                    let kind = Kind {
                        driver: driver.clone(),
                        runtime: self.runtime(),
                        virtualisation: product.virtualisation,
                        platform: self.platform.clone(),
                        ..Kind::of(gpu)
                    };
                    Seen::Gpu { kind, remarks }
                }
            });
        }
        out
    }

    /// The module in a developer kit's name; what stands behind it in the name is dropped word by word.
    fn jetson(&self, model: &str) -> Seen {
        let words: Vec<&str> = model.split_whitespace().take(16).collect();
        let heads = (1..=words.len()).rev().map(|n| words.iter().take(n).copied().collect::<Vec<_>>().join(" "));
        let embedded = |name: &String| self.catalog.gpu(name).is_ok_and(|g| g.class() == Some(GpuClass::Embedded));
        let bare = |name: String| name.strip_prefix("NVIDIA ").map(str::to_owned).unwrap_or(name);
        match heads.map(bare).find(embedded).and_then(|name| judged(self.catalog, &name).ok()) {
            Some(gpu) => {
                let kind = Kind { runtime: Runtime::Tegra, platform: self.platform.clone(), ..Kind::of(gpu) };
                let remark = format!("{model}; drivers of L4T number apart, so none is named");
                Seen::Gpu { kind, remarks: vec![remark] }
            }
            None => {
                let what = if model.is_empty() { "a Tegra" } else { model }.to_owned();
                let why = "the catalog knows no module of that name".to_owned();
                Seen::LeftOut(Left { what, why, gpu: None })
            }
        }
    }

    /// GPUs of AMD in KFD's topology, one for each node with a GPU.
    pub fn amd(&self) -> Vec<Seen> {
        let mut out = Vec::new();
        // Only AMD's own module has a version; the kernel's has none.
        let driver = self.text("sys/module/amdgpu/version").map(|v| v.trim().to_owned());
        let driver = driver.filter(|v| DriverVersion::of_amd(v).is_ok());
        for folder in self.entries("sys/class/kfd/kfd/topology/nodes") {
            let Some(text) = self.read(&folder.join("properties")) else { continue };
            let number = |name: &str| -> Option<u32> {
                text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
            };
            let Some(target) = number("gfx_target_version").and_then(other::gfx) else { continue };
            // The product is told by its device id, where the catalog knows that as one of the same target.
            let product = number("device_id").and_then(|id| {
                let found = self.catalog.gpu(&format!("1002:{id:04x}")).ok()?;
                (found.device == self.catalog.gpu(&target).ok()?.device).then(|| found.name())
            });
            out.push(match judged(self.catalog, product.as_deref().unwrap_or(&target)) {
                Ok(gpu) => {
                    let kind = Kind { driver: driver.clone(), platform: self.platform.clone(), ..Kind::of(gpu) };
                    Seen::Gpu { kind, remarks: vec![format!("KFD: gfx_target_version of {target}")] }
                }
                Err(left) => {
                    Seen::LeftOut(Left { what: format!("a GPU of AMD, {target}"), gpu: Some(target), ..left })
                }
            });
        }
        out
    }

    /// Display devices of a maker whose own interface showed none. `told`: makers that need not be looked for.
    pub fn display(&self, told: &[&str]) -> Vec<Seen> {
        let mut out = Vec::new();
        for folder in self.entries("sys/class/drm") {
            // card0, and not its connectors (card0-DP-1) or renderD128.
            let name = folder.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if !name.strip_prefix("card").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
                continue;
            }
            let id = |file: &str| self.read(&folder.join("device").join(file)).map(|t| t.trim().to_owned());
            let (vendor, device) = (id("vendor").unwrap_or_default(), id("device").unwrap_or_default());
            let (maker, why) = match vendor.as_str() {
                "0x10de" => {
                    ("NVIDIA", "NVIDIA's driver does not show it: neither nvidia-smi nor /proc/driver/nvidia")
                }
                "0x1002" => {
                    ("AMD", "KFD does not show it: its kernel driver is not loaded, or it is not for computing")
                }
                "0x8086" => {
                    let known = judged(self.catalog, &format!("8086:{}", device.trim_start_matches("0x")));
                    if let (Ok(gpu), false) = (known, told.contains(&"Intel")) {
                        let kind = Kind { platform: self.platform.clone(), ..Kind::of(gpu) };
                        out.push(Seen::Gpu { kind, remarks: vec![format!("display device 8086:{device}")] });
                        continue;
                    }
                    ("Intel", "the catalog knows no GPU of that device id")
                }
                _ => continue,
            };
            if !told.contains(&maker) {
                let what = format!("a GPU of {maker}, device {device}");
                out.push(Seen::LeftOut(Left { what, why: why.to_owned(), gpu: None }));
            }
        }
        out
    }

    fn entries(&self, dir: &str) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.root.join(dir)).into_iter().flatten().take(MOST_ENTRIES);
        let mut out: Vec<PathBuf> = listed.filter_map(|e| Some(e.ok()?.path())).collect();
        out.sort();
        out
    }

    fn text(&self, file: &str) -> Option<String> {
        self.read(&self.root.join(file))
    }

    fn read(&self, file: &Path) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(file).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The version in the first line of /proc/driver/nvidia/version, which names the kernel module before it.
fn driver(text: &str) -> Option<String> {
    let words = text.lines().find(|l| l.starts_with("NVRM"))?.split_whitespace();
    let version = |w: &str| w.parse::<DriverVersion>().ok().filter(|v| !v.is_branch());
    words.filter_map(version).next().map(|v| v.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn host(root: &tempfile::TempDir) -> Host<'static> {
        Host::new(root.path(), None, Catalog::embedded())
    }

    #[test]
    fn drivers_of_both_kernel_modules() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:  gcc version 12.3.0\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build  (dvs-builder@U16)\n";
        assert_eq!(driver(closed).as_deref(), Some("535.183.01"));
        assert_eq!(driver(open).as_deref(), Some("550.54.14"));
        assert_eq!(driver("GCC version: gcc version 512.3.0"), None);
        assert_eq!(driver("NVRM version: NVIDIA 2024"), None);
    }

    #[test]
    fn nvidia_s_files_in_proc() {
        let root = tempfile::tempdir().unwrap();
        assert!(host(&root).nvidia().is_empty());
        write(
            root.path(),
            "proc/driver/nvidia/gpus/0000:01:00.0/information",
            "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 178\n",
        );
        write(root.path(), "proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t Unknown\n");
        write(
            root.path(),
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n",
        );
        let seen = host(&root).nvidia();
        let [Seen::Gpu { kind, .. }, Seen::LeftOut(left)] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!((kind.gpu.as_str(), kind.driver.as_deref()), ("NVIDIA GeForce RTX 4090", Some("550.54.15")));
        assert_eq!(left.what, "Unknown");
    }

    #[test]
    fn jetsons_and_wsl() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0");
        write(root.path(), "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0");
        let seen = host(&root).nvidia();
        let [Seen::Gpu { kind, .. }] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!((kind.gpu.as_str(), kind.runtime), ("Jetson AGX Orin", Runtime::Tegra));
        let root = tempfile::tempdir().unwrap();
        assert_eq!(host(&root).runtime(), Runtime::Toolkit);
        write(root.path(), "proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
        assert_eq!(host(&root).runtime(), Runtime::Wsl);
    }

    #[test]
    fn gpus_of_other_makers() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "sys/class/kfd/kfd/topology/nodes/0/properties",
            "cpu_cores_count 96\ngfx_target_version 0\n",
        );
        write(
            root.path(),
            "sys/class/kfd/kfd/topology/nodes/1/properties",
            "simd_count 1216\ngfx_target_version 90402\n",
        );
        write(root.path(), "sys/class/kfd/kfd/topology/nodes/2/properties", "gfx_target_version x\n");
        let seen = host(&root).amd();
        let [Seen::Gpu { kind, .. }] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!(kind.gpu, "gfx942", "no device id names the product");
        let properties = "vendor_id 4098\ndevice_id 29857\ngfx_target_version 90402\n";
        write(root.path(), "sys/class/kfd/kfd/topology/nodes/1/properties", properties);
        write(root.path(), "sys/module/amdgpu/version", "6.10.5\n");
        let seen = host(&root).amd();
        let [Seen::Gpu { kind, .. }] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!((kind.gpu.as_str(), kind.driver.as_deref()), ("AMD Instinct MI300X", Some("6.10.5")));
        // The id is that of a product of another target.
        let properties = "device_id 29857\ngfx_target_version 110000\n";
        write(root.path(), "sys/class/kfd/kfd/topology/nodes/1/properties", properties);
        let seen = host(&root).amd();
        assert!(matches!(seen.as_slice(), [Seen::Gpu { kind, .. }] if kind.gpu == "gfx1100"), "{seen:?}");
        for (card, vendor, device) in [
            ("card0", "0x8086", "0x0bd5"),
            ("card1", "0x10de", "0x2330"),
            ("card0-DP-1", "0x8086", "0x0bd5"),
            ("renderD128", "0x8086", "0x0bd5"),
            ("card2", "0x1a03", "0x2000"),
            ("card3", "0x8086", "0xffff"),
        ] {
            write(root.path(), &format!("sys/class/drm/{card}/device/vendor"), &format!("{vendor}\n"));
            write(root.path(), &format!("sys/class/drm/{card}/device/device"), &format!("{device}\n"));
        }
        let seen = host(&root).display(&[]);
        assert!(
            matches!(&seen[..], [Seen::Gpu { kind, .. }, Seen::LeftOut(_), Seen::LeftOut(left)]
                if kind.gpu == "Intel Data Center GPU Max 1550" && left.what.contains("0xffff")),
            "{seen:?}"
        );
        assert_eq!(host(&root).display(&["NVIDIA", "AMD"]).len(), 2);
    }
}
