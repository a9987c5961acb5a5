//! The HTML report in a real browser, by testdata/html/check.mjs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{finish, on_path, program, skipped, testdata};

/// Node with its own WebSocket, and a Chromium.
fn browser() -> Option<&'static str> {
    if !on_path("node") {
        skipped("no node to drive a browser with");
        return None;
    }
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| on_path(name));
    if found.is_none() {
        skipped("no chromium to open HTML reports with");
    }
    found
}

/// What the check says of a page and the JSON of the same run, and whether it holds.
fn check(browser: &str, page: &Path, json: &Path) -> (bool, String) {
    let output = Command::new("node")
        // Node 20 has it behind this flag; later ones take the flag and need it not.
        .arg("--experimental-websocket")
        .arg(testdata().join("html/check.mjs"))
        .args([page, json])
        .env("CHROMIUM", browser)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), told)
}

/// Both reports of one run.
fn reports(dir: &Path, args: &[&str]) -> (std::path::PathBuf, std::path::PathBuf) {
    let (page, json) = (dir.join("report.html"), dir.join("report.json"));
    let mut run = program();
    run.current_dir(dir).args(args).arg("-q");
    run.arg(format!("--output=html={}", page.display())).arg(format!("--output=json={}", json.display()));
    finish(&mut run);
    (page, json)
}

#[test]
fn pages_hold_in_a_browser() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| testdata().join(path).display().to_string();
    let dockerfile = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST=\"8.0 8.6\"\n\
        RUN pip install --index-url https://download.pytorch.org/whl/cu126 torch==2.7.1 \\\n\
        \t&& pip install flash-attn==2.8.3 --no-build-isolation\n";
    fs::write(dir.path().join("Dockerfile"), dockerfile).unwrap();
    let (sample, fleet, umoci) =
        (at("images/sample.tar"), at("images/imagelint.toml"), at("builders/images/umoci.oci"));
    let one = ["scan", &sample, "--fleet", &fleet, "--dockerfile", "Dockerfile", "--sizes"];
    let several = ["scan", &sample, &umoci, "nosuch.tar", "--fleet", &fleet];
    let files = ["lint", "Dockerfile", "--fleet", &fleet];
    let coverage = ["scan", &umoci];
    for args in [&one[..], &several, &files, &coverage] {
        let (page, json) = reports(dir.path(), args);
        let (holds, told) = check(browser, &page, &json);
        assert!(holds, "{args:?}: {told}");
    }
    // What is wrong is seen.
    let (page, json) = reports(dir.path(), &one);
    let text = fs::read_to_string(&page).unwrap();
    for (from, to, why) in [
        ("data-verdict=\"fail\"", "data-verdict=\"ok\"", "the JSON lacks"),
        ("<main id=\"main\">", "<main id=\"main\"><img src=\"https://localhost:1/x.png\" alt=\"\"/>", "asks for"),
        ("<main id=\"main\">", "<main id=\"main\"><script>1</script>", "log:"),
    ] {
        fs::write(&page, text.replace(from, to)).unwrap();
        let (holds, told) = check(browser, &page, &json);
        assert!(!holds && told.contains(why), "{to}: {told}");
    }
}
