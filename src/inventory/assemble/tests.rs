use super::super::{Files, Listed, Said, same_component};
use super::*;
use crate::model::ClaimKind;

const SITE: &str = "opt/v/lib/python3.11/site-packages";

/// Facts under construction.
#[derive(Default)]
struct Image(Vec<(ImagePath, Fact)>);

impl Image {
    fn python(mut self, info: &str, name: &str, version: &str) -> Self {
        let fact = Fact::Python { name: name.into(), version: Some(version.into()) };
        let file = if info.ends_with("dist-info") { "METADATA" } else { "PKG-INFO" };
        self.0.push((ImagePath::new(format!("{info}/{file}")), fact));
        self
    }

    fn record(mut self, info: &str, files: &[&str]) -> Self {
        let fact = Fact::PythonFiles { files: owned(files) };
        self.0.push((ImagePath::new(format!("{info}/RECORD")), fact));
        self
    }

    fn torch(mut self, site: &str, version: &str, cuda: &str) -> Self {
        let said = vec![Said { kind: ClaimKind::Cuda, value: cuda.into() }];
        let fact = Fact::Built { import: "torch".into(), version: Some(version.into()), said };
        self.0.push((ImagePath::new(format!("{site}/torch/version.py")), fact));
        self
    }

    fn dpkg(mut self, name: &str, version: &str, files: &[&str]) -> Self {
        let package = Package::new(Manager::Dpkg, name, Some(version.into()));
        let packages = vec![Listed { package, files: Files::default() }];
        self.0.push((ImagePath::new("var/lib/dpkg/status"), Fact::Packages { packages, unread: 0 }));
        let path = ImagePath::new(format!("var/lib/dpkg/info/{name}:amd64.list"));
        self.0.push((path, Fact::DpkgFiles { package: name.into(), files: owned(files) }));
        self
    }

    fn package(mut self, db: &str, manager: Manager, name: &str, files: &[&str]) -> Self {
        let package = Package::new(manager, name, Some("1".into()));
        let packages = vec![Listed { package, files: owned(files) }];
        self.0.push((ImagePath::new(db), Fact::Packages { packages, unread: 0 }));
        self
    }

    fn conda(self, prefix: &str, name: &str, files: &[&str]) -> Self {
        let db = format!("{prefix}/conda-meta/{name}-1-0.json");
        let files: Vec<String> = files.iter().map(|f| format!("{prefix}/{f}")).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        self.package(&db, Manager::Conda, name, &files)
    }

    fn assemble(&self, files: &[&str], naming: &dyn Naming) -> Inventory {
        let facts: Vec<(ImagePath, &Fact)> = self.0.iter().map(|(p, f)| (p.clone(), f)).collect();
        let files: Vec<ImagePath> = files.iter().map(ImagePath::new).collect();
        let inventory = super::assemble(&facts, &files, naming);
        let reversed: Vec<(ImagePath, &Fact)> = facts.into_iter().rev().collect();
        assert_eq!(inventory, super::assemble(&reversed, &files, naming), "the order of facts matters");
        inventory
    }
}

fn owned(files: &[&str]) -> Files {
    let mut out = Files::default();
    files.iter().for_each(|f| out.add(&ImagePath::new(f)));
    out.finish(0)
}

/// `name version manager @root` of each file's component.
fn owners(inventory: &Inventory) -> Vec<String> {
    let show = |c: &Component| {
        let version = c.version.as_deref().unwrap_or("-");
        format!("{} {} {:?} @{}", c.name, version, c.manager, c.root)
    };
    inventory.owner.iter().map(|o| o.map_or(String::new(), |i| show(&inventory.components[i]))).collect()
}

struct FlashAttn;
impl Naming for FlashAttn {
    fn component_for(&self, path: &ImagePath) -> Option<String> {
        path.file_name().starts_with(b"flash_attn_2_cuda").then(|| "flash_attn".to_owned())
    }
}

const FLASH: &str = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so";

#[test]
fn metadata_alone_names_a_package_folder() {
    let image = Image::default().python(&format!("{SITE}/torch-2.7.0.dist-info"), "torch", "2.7.0").torch(
        SITE,
        "2.7.0+cu126",
        "12.6",
    );
    let inventory = image.assemble(&[&format!("{SITE}/torch/lib/libtorch_cuda.so")], &NoNaming);
    assert_eq!(owners(&inventory), [format!("torch 2.7.0+cu126 Pip @{SITE}")]);
    let claim = Claim {
        component: "torch".into(),
        kind: ClaimKind::Cuda,
        value: "12.6".into(),
        said_by: ImagePath::new(format!("{SITE}/torch/version.py")),
    };
    assert_eq!(inventory.claims, [claim]);
    let package = Package::new(Manager::Pip, "torch", Some("2.7.0+cu126".into()));
    assert_eq!(inventory.packages, [package]);
}

#[test]
fn a_version_file_alone_gives_the_version() {
    let image = Image::default().torch(SITE, "2.7.0+cu126", "12.6");
    let inventory = image.assemble(&[&format!("{SITE}/torch/lib/libtorch_cuda.so")], &NoNaming);
    assert_eq!(owners(&inventory), [format!("torch 2.7.0+cu126 Path @{SITE}")]);
    assert!(inventory.packages.is_empty());
}

#[test]
fn modules_in_the_site_are_components_of_their_own() {
    let module = format!("{SITE}/{FLASH}");
    let named = Image::default().assemble(&[&module], &FlashAttn);
    assert_eq!(owners(&named), [format!("flash_attn - Path @{SITE}")]);
    let unnamed = Image::default().assemble(&[&module], &NoNaming);
    assert_eq!(owners(&unnamed), [format!("flash_attn_2_cuda - Path @{SITE}")]);
    let image = Image::default().python(&format!("{SITE}/flash_attn-2.7.4.dist-info"), "flash-attn", "2.7.4");
    let known = image.assemble(&[&module], &FlashAttn);
    assert_eq!(owners(&known), [format!("flash-attn 2.7.4 Pip @{SITE}")]);
    assert!(same_component(&known.components[0].name, "flash_attn"));
}

#[test]
fn records_win_over_lists_and_folders() {
    let info = format!("{SITE}/faiss_gpu_cu12-1.9.dist-info");
    let listed = format!("{SITE}/faiss/_swigfaiss.so");
    let built = format!("{SITE}/faiss/jit/extra.so");
    let tool = "opt/v/bin/tool";
    let image = Image::default().python(&info, "faiss-gpu-cu12", "1.9").record(&info, &[&listed, tool]).dpkg(
        "libfaiss",
        "1",
        &[&format!("/{listed}"), "/usr/lib/libfaiss.so"],
    );
    let inventory = image.assemble(&[&listed, &built, tool, "usr/lib/libfaiss.so"], &NoNaming);
    let faiss = format!("faiss-gpu-cu12 1.9 Pip @{SITE}");
    assert_eq!(owners(&inventory), [&faiss, &faiss, &faiss, "libfaiss 1 Dpkg @usr/lib"]);
    assert_eq!(inventory.components.len(), 2);
}

#[test]
fn a_folder_that_a_record_owns_is_wholly_its_own() {
    let info = format!("{SITE}/odd_name-1.dist-info");
    let listed = format!("{SITE}/pkg/a.so");
    let image = Image::default().python(&info, "odd-name", "1").record(&info, &[&listed]);
    let inventory = image.assemble(&[&listed, &format!("{SITE}/pkg/built.so")], &NoNaming);
    assert_eq!(inventory.components.len(), 1);
}

#[test]
fn a_folder_that_records_share_is_nobodys() {
    let infos = ["nvidia_cublas-13.0", "nvidia_cufft-12.0"].map(|i| format!("{SITE}/{i}.dist-info"));
    let files = ["libcublas.so.13", "libcufft.so.12", "libother.so"].map(|f| format!("{SITE}/nvidia/cu13/lib/{f}"));
    let image = Image::default()
        .python(&infos[0], "nvidia-cublas", "13.0")
        .record(&infos[0], &[&files[0]])
        .python(&infos[1], "nvidia-cufft", "12.0")
        .record(&infos[1], &[&files[1]]);
    let inventory = image.assemble(&files.each_ref().map(String::as_str), &NoNaming);
    assert_eq!(
        owners(&inventory),
        [
            format!("nvidia-cublas 13.0 Pip @{SITE}"),
            format!("nvidia-cufft 12.0 Pip @{SITE}"),
            format!("nvidia-cu13 - Path @{SITE}"),
        ]
    );
}

#[test]
fn lists_of_a_merged_usr_are_found_either_way() {
    let image = Image::default().dpkg("libc6", "2.36", &["/lib/x86_64-linux-gnu/libc.so.6"]).dpkg(
        "libz",
        "1.2",
        &["/usr/lib/x86_64-linux-gnu/libz.so.1"],
    );
    let files = ["usr/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libz.so.1"];
    let inventory = image.assemble(&files, &NoNaming);
    assert_eq!(
        owners(&inventory),
        ["libc6 2.36 Dpkg @usr/lib/x86_64-linux-gnu", "libz 1.2 Dpkg @lib/x86_64-linux-gnu"]
    );
}

#[test]
fn nvidia_wheels_and_bundled_libraries() {
    let image = Image::default()
        .python(&format!("{SITE}/nvidia_cublas_cu12-12.6.dist-info"), "nvidia-cublas-cu12", "12.6")
        .python(&format!("{SITE}/ctranslate2-4.4.0.dist-info"), "ctranslate2", "4.4.0");
    let files = [
        format!("{SITE}/nvidia/cublas/lib/libcublas.so.12"),
        format!("{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"),
        format!("{SITE}/ctranslate2.libs/libcudnn-abc.so.8"),
        format!("{SITE}/ctranslate2/_ext.so"),
    ];
    let inventory = image.assemble(&files.each_ref().map(String::as_str), &NoNaming);
    assert_eq!(
        owners(&inventory),
        [
            format!("nvidia-cublas-cu12 12.6 Pip @{SITE}"),
            format!("nvidia-cuda-runtime - Path @{SITE}"),
            format!("ctranslate2 4.4.0 Pip @{SITE}"),
            format!("ctranslate2 4.4.0 Pip @{SITE}"),
        ]
    );
}

#[test]
fn two_installations_stay_apart() {
    let sites = ["a/lib/python3.10/site-packages", "b/lib/python3.11/site-packages"];
    let image = Image::default()
        .python(&format!("{}/torch-2.6.0.dist-info", sites[0]), "torch", "2.6.0")
        .python(&format!("{}/torch-2.7.0.dist-info", sites[1]), "torch", "2.7.0")
        .torch(sites[0], "2.6.0+cu124", "12.4");
    let files = sites.map(|s| format!("{s}/torch/lib/libtorch_cuda.so"));
    let inventory = image.assemble(&files.each_ref().map(String::as_str), &NoNaming);
    assert_eq!(
        owners(&inventory),
        [format!("torch 2.6.0+cu124 Pip @{}", sites[0]), format!("torch 2.7.0 Pip @{}", sites[1])]
    );
}

#[test]
fn a_wheel_is_a_site_by_itself() {
    let image = Image::default().python("torch-2.7.0+cu126.dist-info", "torch", "2.7.0+cu126");
    let inventory = image.assemble(&["torch/lib/x.so", "functorch/_C.so", "other/x.so"], &NoNaming);
    let torch = "torch 2.7.0+cu126 Pip @";
    assert_eq!(owners(&inventory), [torch, torch, "other - Path @"]);
}

#[test]
fn a_source_tree_says_nothing_about_folders_it_does_not_name() {
    let image = Image::default().python("app/vllm.egg-info", "vllm", "0.9");
    let inventory = image.assemble(&["app/vllm/_C.abi3.so", "app/engine/build/libx.so"], &NoNaming);
    assert_eq!(owners(&inventory), ["vllm 0.9 Pip @app", "engine - Path @app/engine"]);
}

#[test]
fn bundled_copies_are_no_packages() {
    let image = Image::default()
        .python(&format!("{SITE}/setuptools/_vendor/wheel-0.43.dist-info"), "wheel", "0.43")
        .python(&format!("{SITE}/setuptools-75.dist-info"), "setuptools", "75");
    let names: Vec<String> = image.assemble(&[], &NoNaming).packages.into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["setuptools"]);
}

#[test]
fn a_record_without_metadata_is_named_by_its_folder() {
    let info = format!("{SITE}/flash_attn-2.7.4.dist-info");
    let file = format!("{SITE}/{FLASH}");
    let inventory = Image::default().record(&info, &[&file]).assemble(&[&file], &NoNaming);
    assert_eq!(owners(&inventory), [format!("flash_attn 2.7.4 Pip @{SITE}")]);
    assert_eq!(inventory.packages[0].name, "flash-attn");
}

#[test]
fn of_two_versions_in_one_place_the_newer_owns_the_folder() {
    let image = Image::default().python(&format!("{SITE}/torch-2.9.0.dist-info"), "torch", "2.9.0").python(
        &format!("{SITE}/torch-2.10.0.dist-info"),
        "torch",
        "2.10.0",
    );
    let inventory = image.assemble(&[&format!("{SITE}/torch/lib/x.so")], &NoNaming);
    assert_eq!(owners(&inventory), [format!("torch 2.10.0 Pip @{SITE}")]);
    assert_eq!(inventory.packages.len(), 2);
}

#[test]
fn conda_owns_what_no_distribution_does() {
    let site = "opt/conda/lib/python3.11/site-packages";
    let (lib, record) = ("lib/python3.11/site-packages/torch/lib/libtorch_python.so", "torch-2.5.1.dist-info");
    let image = Image::default()
        .conda("opt/conda", "libtorch", &["lib/libtorch_cuda.so"])
        .conda("opt/conda", "pytorch", &[lib, "lib/python3.11/site-packages/alone/_C.so"])
        .conda("opt/env", "libtorch", &["lib/libtorch_cuda.so"])
        .dpkg("odd", "1", &["/opt/env/lib/libtorch_cuda.so"]);
    let torch = format!("{site}/torch/lib/libtorch_python.so");
    let alone = format!("{site}/alone/_C.so");
    let files = ["opt/conda/lib/libtorch_cuda.so", "opt/env/lib/libtorch_cuda.so", &torch, &alone];
    let conda = ["libtorch 1 Conda @opt/conda", "libtorch 1 Conda @opt/env"];
    let by_conda = "pytorch 1 Conda @opt/conda";
    assert_eq!(owners(&image.assemble(&files, &NoNaming)), [conda[0], conda[1], by_conda, by_conda]);
    // Where the distribution is known, it is the owner, with a RECORD or without.
    let by_pip = format!("torch 2.5.1 Pip @{site}");
    let image = image.python(&format!("{site}/{record}"), "torch", "2.5.1");
    let inventory = image.assemble(&files, &NoNaming);
    assert_eq!(owners(&inventory), [conda[0], conda[1], &by_pip, by_conda]);
    let names: Vec<String> = inventory.packages.iter().map(|p| format!("{:?} {}", p.manager, p.name)).collect();
    assert_eq!(names, ["Pip torch", "Dpkg odd", "Conda libtorch", "Conda pytorch"]);
    let recorded = image.record(&format!("{site}/{record}"), &[&torch]).assemble(&files, &NoNaming);
    assert_eq!(owners(&recorded)[2], by_pip);
}

#[test]
fn system_packages_own_their_files_wherever_usr_is() {
    let image = Image::default()
        .package("var/lib/rpm/rpmdb.sqlite", Manager::Rpm, "glibc", &["lib64/libc.so.6"])
        .package("lib/apk/db/installed", Manager::Apk, "zlib", &["lib/libz.so.1", "lib64/libc.so.6"]);
    let inventory = image.assemble(&["usr/lib64/libc.so.6", "lib/libz.so.1", "usr/lib/libz.so.1"], &NoNaming);
    assert_eq!(owners(&inventory), ["glibc 1 Rpm @usr/lib64", "zlib 1 Apk @", "zlib 1 Apk @"]);
}

#[test]
fn packages_that_could_not_be_read_are_told() {
    let fact = Fact::Packages { packages: vec![], unread: 2 };
    let path = ImagePath::new("var/lib/rpm/rpmdb.sqlite");
    let inventory = super::assemble(&[(path.clone(), &fact)], &[], &NoNaming);
    assert_eq!(inventory.gaps, [Gap::note(path, "2 of its packages could not be read")]);
}

#[test]
fn file_lists_read_in_part_are_told() {
    let files = Files { hashes: vec![], skipped: 3 };
    let path = ImagePath::new(format!("{SITE}/x-1.dist-info/RECORD"));
    let fact = Fact::PythonFiles { files };
    let inventory = super::assemble(&[(path.clone(), &fact)], &[], &NoNaming);
    assert_eq!(inventory.gaps, [Gap::note(path, "3 lines of its file list were not read")]);
}

#[test]
fn facts_survive_storage() {
    let image = Image::default().torch(SITE, "2.7.0", "12.6").dpkg("a", "1", &["/b"]).conda("c", "d", &["e"]);
    for (_, fact) in &image.0 {
        let text = serde_json::to_string(fact).unwrap();
        assert_eq!(&serde_json::from_str::<Fact>(&text).unwrap(), fact);
    }
}
