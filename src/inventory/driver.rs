//! Packages of NVIDIA's driver, by name, among what a package asks for.

/// Driver packages listed of one package at most.
const LIMIT: usize = 100;

/// How Debian, Ubuntu, NVIDIA's own repositories, RPM Fusion, SUSE and Alpine call parts of the driver.
const PREFIXES: &[&str] = &[
    "akmod-nvidia",
    "cuda-drivers",
    "dkms-nvidia",
    "kmod-nvidia",
    "libcuda1",
    "libcudadebugger",
    "libegl-nvidia",
    "libgl1-nvidia",
    "libgles-nvidia",
    "libglx-nvidia",
    "libnvcuvid",
    "libnvidia-",
    "libnvoptix",
    "nvidia-alternative",
    "nvidia-compute-g0",
    "nvidia-compute-utils",
    "nvidia-computeg0",
    "nvidia-dkms",
    "nvidia-driver",
    "nvidia-egl-icd",
    "nvidia-firmware",
    "nvidia-gfxg0",
    "nvidia-glg0",
    "nvidia-headless",
    "nvidia-kernel",
    "nvidia-kmod",
    "nvidia-legacy",
    "nvidia-libopencl",
    "nvidia-modprobe",
    "nvidia-open",
    "nvidia-opencl-icd",
    "nvidia-persistenced",
    "nvidia-smi",
    "nvidia-tesla",
    "nvidia-utils",
    "nvidia-vdpau-driver",
    "nvidia-vulkan-",
    "nvidia-xconfig",
    "x11-video-nvidia",
    "xorg-x11-drv-nvidia",
    "xserver-xorg-video-nvidia",
];

/// What has such a name and is no part of the driver: the container toolkit, free libraries, headers.
const OTHERS: &[&str] = &["libnvidia-container", "libnvidia-egl-", "nvidia-opencl-common"];

/// Debian's driver provides `libcuda-12.2-1` for the release it knows.
fn is_virtual(name: &str) -> bool {
    name.strip_prefix("libcuda-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_driver(name: &str) -> bool {
    let headers = ["-dev", "-devel", "-doc"].iter().any(|end| name.ends_with(end));
    let named = PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_virtual(name);
    named && !headers && !OTHERS.iter().any(|other| name.starts_with(other))
}

/// Driver packages that are asked for, each once.
#[derive(Debug, Default)]
pub struct Wanted(Vec<String>);

impl Wanted {
    /// One name, whatever stands behind it: a version, an architecture, a flag.
    pub fn add(&mut self, requirement: &[u8]) {
        let requirement = requirement.trim_ascii();
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'+' | b'_');
        let length = requirement.iter().take_while(|b| plain(b)).count();
        let Ok(name) = std::str::from_utf8(&requirement[..length]) else { return };
        let name = name.to_ascii_lowercase();
        if name.len() <= 256 && is_driver(&name) && self.0.len() < LIMIT && !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    /// `a (>= 1), b | c:any`, as dpkg has it.
    pub fn add_list(&mut self, list: &[u8]) {
        list.split(|b| matches!(b, b',' | b'|')).for_each(|one| self.add(one));
    }

    /// Sorted.
    pub fn finish(mut self) -> Vec<String> {
        self.0.sort();
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_driver_are_told_from_what_is_named_like_them() {
        for name in [
            "cuda-drivers",
            "cuda-drivers-535",
            "libcuda-12.2-1",
            "libcuda1",
            "libnvcuvid1",
            "libnvidia-compute-535-server",
            "libnvidia-encode1",
            "libnvidia-ml1",
            "nvidia-alternative",
            "nvidia-driver-535",
            "nvidia-driver-cuda-libs",
            "nvidia-kernel-dkms",
            "nvidia-utils-535",
        ] {
            assert!(is_driver(name), "{name}");
        }
        for name in [
            "cuda-toolkit-12-8",
            "cuda-compat-12-8",
            "libcudart12",
            "libcudnn9-cuda-12",
            "libnvidia-container1",
            "libnvidia-container-tools",
            "libnvidia-ml-dev",
            "nvidia-container-toolkit",
            "nvidia-cuda-toolkit",
            "nvidia-cudnn",
            "nvidia-profiler",
            "libcuda-",
        ] {
            assert!(!is_driver(name), "{name}");
        }
    }

    #[test]
    fn alternatives_are_split_and_versions_cut() {
        let mut wanted = Wanted::default();
        // Of Debian's libnvidia-ml-dev, nvidia-cuda-dev and a made-up one.
        wanted
            .add_list(b"libc6 (>= 2.17), libcuda1 (>= 525) | libcuda-12.0-1, nvidia-smi:any, libnvidia-ml1 (= 1)");
        wanted.add_list(b"libcuda1, libfoo | nvidia-driver-535 [amd64]");
        assert_eq!(
            wanted.finish(),
            ["libcuda-12.0-1", "libcuda1", "libnvidia-ml1", "nvidia-driver-535", "nvidia-smi"]
        );
        let mut many = Wanted::default();
        (0..1000).for_each(|i| many.add(format!("libnvidia-{i}").as_bytes()));
        assert_eq!(many.finish().len(), LIMIT);
    }
}
