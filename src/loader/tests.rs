//! The loader's laws on images in memory. What the real ld.so does with the same shapes is in `testdata/loader`.

use super::search::Budget;
use super::testing::{Builder, elf, soname};
use crate::model::*;

const LIB: &str = "usr/lib/x86_64-linux-gnu";

fn rpath(path: &str, facts: ElfFacts) -> ElfFacts {
    ElfFacts { rpath: Some(path.to_owned()), ..facts }
}

fn runpath(path: &str, facts: ElfFacts) -> ElfFacts {
    ElfFacts { runpath: Some(path.to_owned()), ..facts }
}

fn machine(machine: u16, facts: ElfFacts) -> ElfFacts {
    ElfFacts { machine, ..facts }
}

#[test]
fn default_directories_and_the_loader_itself() {
    let mut image = Builder::debian();
    image.program("opt/p", elf(&["libc.so.6", "ld-linux-x86-64.so.2", "libnone.so"]));
    let ran = image.run();
    assert_eq!(
        ran.needs("opt/p"),
        [
            format!("libc.so.6: {LIB}/libc.so.6 (default directory)"),
            format!(
                "ld-linux-x86-64.so.2: {LIB}/ld-linux-x86-64.so.2 (already loaded by {LIB}/ld-linux-x86-64.so.2)"
            ),
            "libnone.so: missing".to_owned(),
        ]
    );
    let libc = Libc::Glibc { path: ImagePath::new(format!("{LIB}/libc.so.6")), version: None };
    assert_eq!(ran.simulated.libc, Some(libc));
    assert_eq!(ran.simulated.ld_cache, LdCache::Absent);
}

#[test]
fn rpath_is_inherited_and_runpath_is_not() {
    let mut image = Builder::debian();
    image.lib("opt/a/liba.so", elf(&["libb.so"])).lib("opt/a/libb.so", elf(&[]));
    image.program("opt/old", rpath("/opt/a", elf(&["liba.so"])));
    image.program("opt/new", runpath("/opt/a", elf(&["liba.so"])));
    image.program("opt/both", ElfFacts { rpath: Some("/opt/a".into()), ..runpath("/none", elf(&["liba.so"])) });
    let ran = image.run();
    assert_eq!(ran.needs("opt/old"), ["liba.so: opt/a/liba.so (RPATH of opt/old)"]);
    assert_eq!(ran.needs("opt/new"), ["liba.so: opt/a/liba.so (RUNPATH)"]);
    assert_eq!(ran.needs("opt/both"), ["liba.so: missing"]);
    // Alone it does not find libb.so; the program with the RPATH does.
    assert_eq!(ran.needs("opt/a/liba.so"), ["libb.so: opt/a/libb.so (RPATH of opt/old)"]);
}

#[test]
fn the_order_of_laws() {
    let mut image = Builder::debian();
    for dir in ["rpath", "env", "run", "cache"] {
        image.lib(&format!("{dir}/libx.so"), elf(&[]));
    }
    image.lib(&format!("{LIB}/libx.so"), elf(&[]));
    image.lib("env/liby.so", elf(&[])).lib("run/liby.so", elf(&[]));
    image.lib("cache/libz.so", elf(&[])).lib(&format!("{LIB}/libz.so"), elf(&[]));
    image.lib(&format!("{LIB}/libgone.so"), elf(&[]));
    image.env("LD_LIBRARY_PATH", ":relative;/env/");
    image.cache(&[
        ("libx.so", "/cache/libx.so"),
        ("libz.so", "/cache/libz.so"),
        ("libgone.so", "/gone/libgone.so"),
    ]);
    image.program("p/r", rpath("/rpath", elf(&["libx.so"])));
    image.program("p/u", runpath("/run", elf(&["libx.so", "liby.so", "libz.so", "libgone.so"])));
    let ran = image.run();
    assert_eq!(ran.needs("p/r"), ["libx.so: rpath/libx.so (RPATH of p/r)"]);
    assert_eq!(
        ran.needs("p/u"),
        [
            "libx.so: env/libx.so (LD_LIBRARY_PATH)".to_owned(),
            "liby.so: env/liby.so (LD_LIBRARY_PATH)".to_owned(),
            "libz.so: cache/libz.so (ld.so.cache)".to_owned(),
            format!("libgone.so: {LIB}/libgone.so (default directory)"),
        ]
    );
}

#[test]
fn origin_is_the_directory_of_the_path_by_which_a_file_was_opened() {
    let mut image = Builder::debian();
    // opt/app/lib/liba.so is a link; its needs are searched beside the link.
    image.link("opt/app/lib/liba.so", "/store/liba.so").lib("opt/app/lib/libb.so", elf(&[]));
    image.lib("store/liba.so", runpath("$ORIGIN", elf(&["libb.so"])));
    image.program("opt/app/p", runpath("${ORIGIN}/lib", elf(&["liba.so"])));
    // `..` goes up from where a linked directory leads to.
    image.link("opt/link", "/data/real").lib("data/lib/libc1.so", elf(&[])).lib("opt/lib/libc1.so", elf(&[]));
    image.program("opt/q", runpath("/opt/link/../lib", elf(&["libc1.so"])));
    image.text("data/real/x");
    let ran = image.run();
    assert_eq!(ran.needs("opt/app/p"), ["liba.so: store/liba.so (RUNPATH)"]);
    assert_eq!(ran.needs("store/liba.so"), ["libb.so: opt/app/lib/libb.so (RUNPATH)"], "as p loads it");
    assert_eq!(ran.needs("opt/q"), ["libc1.so: data/lib/libc1.so (RUNPATH)"]);
}

#[test]
fn tokens_capabilities_and_no_default_directories() {
    let mut image = Builder::debian();
    image.lib("opt/lib/x86_64-linux-gnu/libt.so", elf(&[]));
    image.lib("opt/glibc-hwcaps/x86-64-v3/libh.so", elf(&[])).lib("opt/libh.so", elf(&[]));
    image.lib("opt/glibc-hwcaps/x86-64-v4/libi.so", elf(&[])).lib("opt/libi.so", elf(&[]));
    image.program("opt/p", runpath("$ORIGIN/$LIB:$ORIGIN", elf(&["libt.so", "libh.so", "libi.so"])));
    let strict = ElfFacts { no_default_dirs: true, ..elf(&["libc.so.6", "libo.so"]) };
    image.lib("other/libo.so", elf(&[])).program("opt/strict", strict);
    image.cache(&[("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"), ("libo.so", "/other/libo.so")]);
    let ran = image.run();
    assert_eq!(
        ran.needs("opt/p"),
        [
            "libt.so: opt/lib/x86_64-linux-gnu/libt.so (RUNPATH)",
            "libh.so: opt/glibc-hwcaps/x86-64-v3/libh.so (RUNPATH)",
            "libi.so: opt/libi.so (RUNPATH)",
        ]
    );
    let strict = ran.needs("opt/strict");
    assert_eq!(strict, ["libc.so.6: missing", "libo.so: other/libo.so (ld.so.cache)"]);
}

#[test]
fn files_in_the_way() {
    let mut image = Builder::debian();
    image.lib("a/libm1.so", machine(183, elf(&[]))).lib("b/libm1.so", elf(&[]));
    image.text("a/libt.so").lib("b/libt.so", elf(&[]));
    image.damaged("a/libd.so").lib("b/libd.so", elf(&[]));
    image.text("a/libdir.so/x").lib("b/libdir.so", elf(&[]));
    image.link("a/libl.so", "nowhere").lib("b/libl.so", elf(&[]));
    image.link("a/libo.so", "libo.so").lib("b/libo.so", elf(&[])).lib(&format!("{LIB}/libo.so"), elf(&[]));
    let needs = ["libm1.so", "libt.so", "libd.so", "libdir.so", "libl.so", "libo.so"];
    image.program("p", runpath("/a:/b", elf(&needs)));
    let ran = image.run();
    assert_eq!(
        ran.needs("p"),
        [
            "libm1.so: b/libm1.so (RUNPATH)",
            "libt.so: refused: a/libt.so is not an ELF file",
            "libd.so: refused: a/libd.so is a damaged ELF file",
            "libdir.so: refused: a/libdir.so is a directory",
            "libl.so: b/libl.so (RUNPATH)",
            // A circle of links ends the search of the list, not of the laws.
            "libo.so: usr/lib/x86_64-linux-gnu/libo.so (default directory)",
        ]
    );
}

#[test]
fn what_is_loaded_already_is_taken_by_its_soname() {
    let mut image = Builder::debian();
    image.lib("a/libfile.so", soname("libname.so.1", &[])).lib("b/libname.so.1", elf(&[]));
    image.program("p", runpath("/a:/b", elf(&["libfile.so", "libname.so.1", "libfile.so"])));
    image.link("a/libsame.so", "libfile.so");
    image.program("q", runpath("/a", elf(&["libfile.so", "libsame.so"])));
    let ran = image.run();
    assert_eq!(
        ran.needs("p"),
        [
            "libfile.so: a/libfile.so (RUNPATH)",
            "libname.so.1: a/libfile.so (already loaded by p)",
            "libfile.so: a/libfile.so (already loaded by p)"
        ]
    );
    assert_eq!(ran.needs("q")[1], "libsame.so: a/libfile.so (already loaded by q)");
}

#[test]
fn names_with_a_slash_are_paths() {
    let mut image = Builder::debian();
    image.lib("opt/lib/liba.so", elf(&[])).lib("work/rel/libb.so", elf(&[]));
    image.config.working_dir = "/work".into();
    image.program("opt/p", elf(&["/opt/lib/liba.so", "$ORIGIN/lib/liba.so", "rel/libb.so", "/none/libc.so"]));
    let needs = image.run().needs("opt/p");
    assert_eq!(needs[0], "/opt/lib/liba.so: opt/lib/liba.so (named by its path)");
    assert_eq!(needs[1], "$ORIGIN/lib/liba.so: opt/lib/liba.so (already loaded by opt/p)");
    assert_eq!(needs[2], "rel/libb.so: work/rel/libb.so (named by its path)");
    assert_eq!(needs[3], "/none/libc.so: missing");
}

#[test]
fn preloads_come_first() {
    let mut image = Builder::debian();
    image
        .lib("pre/libx.so", soname("libx.so", &[]))
        .lib("env/libx.so", elf(&[]))
        .lib("pre/liby.so", soname("liby.so", &[]));
    image.env("LD_PRELOAD", "/pre/libx.so /none.so").env("LD_LIBRARY_PATH", "/env");
    image.capture("etc/ld.so.preload", super::Capture::Preload(vec!["/pre/liby.so".into()]));
    image.program("p", elf(&["libx.so", "liby.so"]));
    assert_eq!(image.run().needs("p"), ["libx.so: pre/libx.so (LD_PRELOAD)", "liby.so: pre/liby.so (LD_PRELOAD)"]);
}

#[test]
fn musl_has_laws_of_its_own() {
    let mut image = Builder::default();
    let program = |facts| ElfFacts { interpreter: Some("/lib/ld-musl-x86_64.so.1".into()), ..facts };
    image.lib("lib/ld-musl-x86_64.so.1", soname("libc.musl-x86_64.so.1", &[]));
    image.lib("usr/lib/libz.so.1", soname("libz.so.1", &["libc.musl-x86_64.so.1"]));
    image.lib("opt/a/liba.so", elf(&["libb.so", "libc.so.6"])).lib("opt/b/libb.so", elf(&[]));
    image.program("p", program(runpath("/opt/a:/opt/b", elf(&["libz.so.1", "liba.so", "libpthread.so.0"]))));
    let ran = image.run();
    assert_eq!(
        ran.needs("p"),
        [
            "libz.so.1: usr/lib/libz.so.1 (musl's system path)",
            "liba.so: opt/a/liba.so (RPATH of p)",
            "libpthread.so.0: lib/ld-musl-x86_64.so.1 (already loaded by lib/ld-musl-x86_64.so.1)",
        ]
    );
    // RUNPATH is inherited.
    assert_eq!(ran.needs("opt/a/liba.so")[0], "libb.so: opt/b/libb.so (RPATH of p)");
    assert_eq!(ran.simulated.libc, Some(Libc::Musl { path: ImagePath::new("lib/ld-musl-x86_64.so.1") }));
    image.capture("etc/ld-musl-x86_64.path", super::Capture::MuslPath("/other\n/usr/lib".into()));
    image.lib("other/libz.so.1", elf(&[]));
    assert_eq!(image.run().needs("p")[0], "libz.so.1: other/libz.so.1 (musl's system path)");
}

#[test]
fn a_stale_cache_and_what_ldconfig_would_cure() {
    let mut image = Builder::debian();
    image.conf("etc/ld.so.conf", "include ld.so.conf.d/*.conf\n").conf("etc/ld.so.conf.d/a.conf", "/opt/lib\n");
    image.lib("opt/lib/libx.so.1.2", soname("libx.so.1", &[])).program("p", elf(&["libx.so.1"]));
    let (x, c) = (("libx.so.1", "/opt/lib/libx.so.1"), ("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"));
    let state = |image: &Builder| image.run().simulated.ld_cache;
    let missing = "libx.so.1: missing, ldconfig: opt/lib/libx.so.1.2";
    assert_eq!((state(&image), image.run().needs("p")), (LdCache::Absent, vec![missing.to_owned()]));
    image.cache(&[c]);
    assert_eq!((state(&image), image.run().needs("p")), (LdCache::Stale, vec![missing.to_owned()]));
    image.link("opt/lib/libx.so.1", "libx.so.1.2").cache(&[x, c]);
    assert_eq!(state(&image), LdCache::Fresh);
    assert_eq!(image.run().needs("p"), ["libx.so.1: opt/lib/libx.so.1.2 (ld.so.cache)"]);
    image.cache(&[x, c, ("libgone.so", "/opt/lib/libgone.so")]);
    assert_eq!(state(&image), LdCache::Stale);
    image.capture("etc/ld.so.cache", super::Capture::UnreadableCache);
    assert_eq!(state(&image), LdCache::Unreadable);
}

#[test]
fn includes_may_go_round_in_circles() {
    let mut image = Builder::debian();
    image.conf("etc/ld.so.conf", "include /etc/ld.so.conf\ninclude /etc/ld.so.conf.d/* /srv/x.conf\n/opt\n");
    image.conf("etc/ld.so.conf.d/b", "include ../ld.so.conf\n").text("srv/x.conf");
    image.lib("opt/libx.so", elf(&[])).program("p", elf(&["libx.so"]));
    let ran = image.run();
    assert_eq!(ran.needs("p"), ["libx.so: missing, ldconfig: opt/libx.so"]);
    assert_eq!(ran.simulated.gaps.len(), 1, "{:?}", ran.simulated.gaps);
}

const SITE: &str = "opt/conda/lib/python3.11/site-packages";

#[test]
fn python_s_rpath_counts_for_what_it_opens() {
    let mut image = Builder::debian();
    image.program("opt/conda/bin/python3.11", rpath("$ORIGIN/../lib", elf(&["libpython3.11.so.1.0", "libc.so.6"])));
    image.lib("opt/conda/lib/libstdc++.so.6", soname("libstdc++.so.6", &[]));
    image.lib("opt/conda/lib/libpython3.11.so.1.0", soname("libpython3.11.so.1.0", &[]));
    image.lib(&format!("{LIB}/libstdc++.so.6"), soname("libstdc++.so.6", &[]));
    image.lib(&format!("{SITE}/x/_x.so"), elf(&["libstdc++.so.6"]));
    image.lib(&format!("{SITE}/x/_y.so"), runpath("/none", elf(&["libstdc++.so.6", "libpython3.11.so.1.0"])));
    let ran = image.run();
    assert_eq!(
        ran.needs(&format!("{SITE}/x/_x.so")),
        ["libstdc++.so.6: opt/conda/lib/libstdc++.so.6 (RPATH of opt/conda/bin/python3.11)"]
    );
    assert_eq!(
        ran.needs(&format!("{SITE}/x/_y.so")),
        [
            format!("libstdc++.so.6: {LIB}/libstdc++.so.6 (default directory)"),
            "libpython3.11.so.1.0: opt/conda/lib/libpython3.11.so.1.0 (already loaded by opt/conda/bin/python3.11)"
                .to_owned(),
        ]
    );
}

#[test]
fn frameworks_have_loaded_what_their_neighbours_need() {
    let mut image = Builder::debian();
    let torch = |f: &str| format!("{SITE}/torch/lib/{f}");
    image.lib(
        &torch("libtorch_python.so"),
        rpath("$ORIGIN", soname("libtorch_python.so", &["libc10.so", "libcublas.so.12"])),
    );
    image.lib(&torch("libc10.so"), soname("libc10.so", &[]));
    image.lib(&format!("{SITE}/nvidia/cublas/lib/libcublas.so.12"), soname("libcublas.so.12", &[]));
    image.lib(&format!("{SITE}/nvidia/curand/lib/libcurand.so.10"), soname("libcurand.so.10", &[]));
    image.lib(
        &format!("{SITE}/flash_attn/_C.so"),
        elf(&["libc10.so", "libcublas.so.12", "libcurand.so.10", "libcuda.so.1", "libnone.so"]),
    );
    image.lib("app/_C.so", elf(&["libc10.so"]));
    let ran = image.run();
    assert_eq!(
        ran.needs(&torch("libtorch_python.so"))[1],
        format!("libcublas.so.12: {SITE}/nvidia/cublas/lib/libcublas.so.12 (loaded by torch)")
    );
    assert_eq!(
        ran.needs(&format!("{SITE}/flash_attn/_C.so")),
        [
            format!("libc10.so: {0} (already loaded by {1})", torch("libc10.so"), torch("libtorch_python.so")),
            format!("libcublas.so.12: {SITE}/nvidia/cublas/lib/libcublas.so.12 (loaded by torch)"),
            format!("libcurand.so.10: {SITE}/nvidia/curand/lib/libcurand.so.10 (loaded by torch)"),
            "libcuda.so.1: driver".to_owned(),
            "libnone.so: missing".to_owned(),
        ]
    );
    assert_eq!(ran.needs("app/_C.so"), ["libc10.so: missing"], "no site of torch's");
}

#[test]
fn libraries_opened_by_name() {
    let mut image = Builder::debian();
    image.lib("opt/libcudnn.so.9", runpath("$ORIGIN", soname("libcudnn.so.9", &[])));
    image.lib("opt/libcudnn_ops.so.9", elf(&[]));
    assert_eq!(
        image.run().opens("opt/libcudnn.so.9"),
        [
            "libcudnn_ops.so.9: opt/libcudnn_ops.so.9 (RUNPATH)",
            "libnvrtc.so.12: missing",
            "libnvrtc.so.13: missing"
        ],
        "a plugin that is not there is not told"
    );
    image.lib("opt/libplugin.so", elf(&[])).lib("rtc/librtc.so", soname("libnvrtc.so.13", &[]));
    // The program has loaded one of them by its SONAME.
    image.program("p", runpath("/opt:/rtc", elf(&["librtc.so", "libcudnn.so.9"])));
    let opens = image.run().opens("opt/libcudnn.so.9");
    assert_eq!(
        opens[1..],
        ["libnvrtc.so.13: rtc/librtc.so (already loaded by p)", "libplugin.so: opt/libplugin.so (RUNPATH)"]
    );
}

fn asks(of: &str, versions: &[&str], facts: ElfFacts) -> ElfFacts {
    let version =
        |v: &&str| AskedVersion { name: (*v).trim_start_matches('?').to_owned(), weak: v.starts_with('?') };
    let asked = Asked { of: of.to_owned(), versions: versions.iter().map(version).collect() };
    ElfFacts { asks: [facts.asks.clone(), vec![asked]].concat(), ..facts }
}

fn defines(versions: &[&str], facts: ElfFacts) -> ElfFacts {
    ElfFacts { defines: versions.iter().map(|v| (*v).to_owned()).collect(), ..facts }
}

#[test]
fn versions_that_a_library_lacks() {
    let mut image = Builder::debian();
    let libc = defines(&["GLIBC_2.2.5", "GLIBC_2.31"], soname("libc.so.6", &[]));
    image.lib(&format!("{LIB}/libc.so.6"), libc);
    image
        .lib("opt/libplain.so", elf(&[]))
        .lib("opt/libdeep.so", asks("libc.so.6", &["GLIBC_2.38"], elf(&["libc.so.6"])));
    let wants = asks(
        "libc.so.6",
        &["GLIBC_2.2.5", "GLIBC_2.34", "?GLIBC_2.99"],
        elf(&["libc.so.6", "libplain.so", "libdeep.so"]),
    );
    image.program("p", runpath("/opt", asks("libplain.so", &["V1"], wants)));
    let ran = image.run();
    let expected = |v: &str| format!("Version 1 of libc.so.6 ({LIB}/libc.so.6): {v}");
    assert_eq!(ran.unmet("p"), [expected("GLIBC_2.34")]);
    assert_eq!(ran.unmet("opt/libdeep.so"), [expected("GLIBC_2.38")]);
    let Some(Libc::Glibc { version, .. }) = &ran.simulated.libc else { panic!("glibc") };
    assert_eq!(version.as_deref(), Some("2.31"));
}

fn imports(names: &[&str], facts: ElfFacts) -> ElfFacts {
    let import = |n: &&str| match n.split_once('@') {
        Some((name, version)) => {
            let (library, version) = version.split_once(':').unwrap();
            Import { name: name.into(), version: Some((library.into(), version.into())), weak: false }
        }
        None => Import { name: n.trim_start_matches('?').into(), version: None, weak: n.starts_with('?') },
    };
    ElfFacts { imports: names.iter().map(import).collect(), ..facts }
}

fn exports(names: &[&str], facts: ElfFacts) -> ElfFacts {
    let symbols = names.iter().map(|n| match n.split_once('@') {
        Some((name, version)) => (name.as_bytes(), Some(version.as_bytes())),
        None => (n.as_bytes(), None),
    });
    ElfFacts { exports: Some(Exports::new(symbols)), ..facts }
}

#[test]
fn symbols_that_nobody_has() {
    let mut image = Builder::debian();
    image.lib("opt/libcudnn_ops.so.9", exports(&["cudnnOps"], soname("libcudnn_ops.so.9", &[])));
    image.lib("opt/libcudnn.so.9", exports(&["cudnnCreate"], soname("libcudnn.so.9", &["libcudnn_ops.so.9"])));
    let wants = imports(
        &["cudnnCreate", "cudnnOps", "cudnnNew", "cudnnNewer", "?cudnnWeak", "malloc"],
        elf(&["libcudnn.so.9"]),
    );
    image.program("p", rpath("/opt", wants.clone()));
    let ran = image.run();
    assert_eq!(ran.unmet("p"), ["Symbol 2 of libcudnn.so.9 (opt/libcudnn.so.9): cudnnNew cudnnNewer"]);
    // A part of the family is missing: it may have them.
    let mut partial = wants.clone();
    partial.needed.push("libcudnn_cnn.so.9".into());
    image.program("p", rpath("/opt", partial));
    assert!(image.run().unmet("p").is_empty());
    // So may one whose symbols are not known.
    image.program("p", rpath("/opt", wants));
    image.lib("opt/libcudnn_ops.so.9", soname("libcudnn_ops.so.9", &[]));
    assert!(image.run().unmet("p").is_empty());
}

#[test]
fn symbols_of_a_version() {
    let mut image = Builder::debian();
    let v = |n: &str| format!("{n}@libnvJitLink.so.12:libnvJitLink.so.12");
    let names = [v("create"), v("new")];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let library = exports(&["create@libnvJitLink.so.12"], soname("libnvJitLink.so.12", &[]));
    image.lib("opt/libnvJitLink.so.12", defines(&["libnvJitLink.so.12"], library.clone()));
    image.program("p", runpath("/opt", imports(&names, elf(&["libnvJitLink.so.12"]))));
    assert_eq!(image.run().unmet("p"), ["Symbol 1 of libnvJitLink.so.12 (opt/libnvJitLink.so.12): new"]);
    image.lib("opt/libnvJitLink.so.12", defines(&["OTHER"], library));
    assert!(image.run().unmet("p").is_empty(), "a missing version is told as such");
}

#[test]
fn webs_of_libraries_end() {
    let mut image = Builder::debian();
    let all: Vec<String> = (0..60).map(|i| format!("lib{i}.so")).collect();
    let needed: Vec<&str> = all.iter().map(String::as_str).collect();
    let dirs: Vec<String> = (0..60).map(|i| format!("/d{i}/$ORIGIN")).collect();
    for name in &all {
        image.lib(&format!("opt/{name}"), rpath(&format!("{}:$ORIGIN", dirs.join(":")), elf(&needed)));
    }
    let ran = image.run_within(&Budget::new(20_000));
    assert!(ran.simulated.gaps.iter().any(|g| g.why.contains("too large a web")), "{:?}", ran.simulated.gaps);
    let missing = ran.simulated.loads.iter().flat_map(|l| &l.needs).any(|n| n.outcome.path().is_none());
    assert!(!missing, "what was not searched to the end is not told as missing");
    let whole = image.run();
    assert!(whole.simulated.gaps.is_empty());
    assert!(whole.needs("opt/lib0.so").iter().all(|n| n.contains(": opt/lib")));
}

#[test]
fn two_machines_in_one_image_keep_apart() {
    let mut image = Builder::debian();
    image.lib("lib32/libc1.so", machine(3, elf(&[])));
    image.lib("opt/a/libx.so", machine(183, elf(&["liby.so"]))).lib("opt/a/liby.so", machine(183, elf(&[])));
    image.lib("opt/x/libx.so", rpath("/opt/a:/opt/x", elf(&["liby.so"]))).lib("opt/x/liby.so", elf(&[]));
    image.lib("opt/a/libz.so", machine(183, rpath("/opt/x:/opt/a", elf(&["liby.so"]))));
    let ran = image.run();
    assert_eq!(ran.needs("opt/x/libx.so"), ["liby.so: opt/x/liby.so (RPATH of opt/x/libx.so)"]);
    assert_eq!(ran.needs("opt/a/libz.so"), ["liby.so: opt/a/liby.so (RPATH of opt/a/libz.so)"]);
}
