//! Libraries whose device code lies in data files: what a scan keeps of their names.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::run;

fn touch(root: &Path, file: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x").unwrap();
}

/// `LIBRARY ROOT: ARCH…` of each set, an index as `ARCH*`.
fn sets(evidence: &Value) -> Vec<String> {
    let sets = evidence["data_sets"].as_array().unwrap().iter();
    let target = |t: &Value| {
        let mut text = t["arch"].as_str().unwrap().to_owned();
        text += if t["indexed"] == true { "*" } else { "" };
        for units in t["units"].as_array().into_iter().flatten() {
            text += &format!("/{units}");
        }
        text
    };
    let text = |set: &Value| {
        let targets: Vec<String> = set["targets"].as_array().unwrap().iter().map(target).collect();
        format!("{} {}: {}", set["library"].as_str().unwrap(), set["root"].as_str().unwrap(), targets.join(" "))
    };
    sets.map(text).collect()
}

fn evidence(reference: &str, out: &Path) -> Value {
    let ran = run(&["scan", reference, "--target", "MI300X", "--save-evidence", out.to_str().unwrap(), "-q"]);
    assert!(out.exists(), "{ran:?}");
    let saved: Value = serde_json::from_str(&fs::read_to_string(out).unwrap()).unwrap();
    saved.get("evidence").and_then(|e| e.get(0)).cloned().unwrap_or(saved)
}

/// S19's names and their kin, a root file system whose /opt/rocm is a link, and links in place of files.
#[test]
fn names_of_data_files_are_kept_by_library_and_place() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    let rocm = "opt/rocm-6.4.1";
    for gfx in ["gfx90a", "gfx942", "gfx1100"] {
        touch(&root, &format!("{rocm}/lib/rocblas/library/TensileLibrary_lazy_{gfx}.dat"));
        for kind in 0..50 {
            touch(&root, &format!("{rocm}/lib/rocblas/library/TensileLibrary_Type_{kind}_{gfx}.co"));
        }
    }
    touch(&root, &format!("{rocm}/lib/rocblas/library/TensileLibrary_Type_HH_fallback.dat"));
    touch(&root, &format!("{rocm}/lib/hipblaslt/library/gfx942/TensileLibrary_lazy_gfx942.dat.zlib"));
    touch(&root, &format!("{rocm}/share/miopen/db/gfx942130.HIP.fdb.txt"));
    touch(&root, &format!("{rocm}/share/miopen/db/gfx90a6e.db.txt"));
    touch(&root, "s/torch/lib/aotriton.images/amd-gfx11xx/flash/x.aks2");
    touch(&root, "etc/os-release");
    fs::copy("/bin/true", root.join("bin_true")).unwrap();
    std::os::unix::fs::symlink("rocm-6.4.1", root.join("opt/rocm")).unwrap();
    let elsewhere = root.join("s/x/rocblas/library");
    fs::create_dir_all(&elsewhere).unwrap();
    let name = "TensileLibrary_lazy_gfx942.dat";
    std::os::unix::fs::symlink(format!("/{rocm}/lib/rocblas/library/{name}"), elsewhere.join(name)).unwrap();
    std::os::unix::fs::symlink("/nowhere", elsewhere.join("TensileLibrary_lazy_gfx90a.dat")).unwrap();
    let found = evidence(&format!("dir:{}", root.display()), &dir.path().join("evidence.json"));
    assert_eq!(
        sets(&found),
        [
            format!("hipBLASLt {rocm}/lib/hipblaslt/library: gfx942*"),
            format!("rocBLAS {rocm}/lib/rocblas/library: gfx90a* gfx942* gfx1100*"),
            format!("MIOpen {rocm}/share/miopen/db: gfx90a/110 gfx942/304"),
            "AOTriton s/torch/lib/aotriton.images: gfx11xx".to_owned(),
            "rocBLAS s/x/rocblas/library: gfx942*".to_owned(),
        ]
    );
    assert_eq!(found["data_sets"][1]["files"], 153);
}
