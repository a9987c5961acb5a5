//! Environment files of conda, and the specifications that they and command lines name packages by.

/// Lines taken of one file.
const MOST_LINES: usize = 10_000;

/// An environment file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Environment {
    pub channels: Vec<String>,
    /// With the line from 1.
    pub packages: Vec<(usize, String)>,
    /// What stands under `pip:`.
    pub pip: Vec<(usize, String)>,
}

/// Reads an environment file line by line: its YAML is lists of texts, and a file that is broken further down still
/// says something.
pub fn environment(bytes: &[u8]) -> Environment {
    let text = String::from_utf8_lossy(bytes);
    let mut out = Environment::default();
    let mut section = "";
    // The indent of the items under `pip:`.
    let mut pip: Option<usize> = None;
    for (index, line) in text.lines().enumerate().take(MOST_LINES) {
        let body = uncommented(line).trim_end();
        let indent = body.len() - body.trim_start().len();
        let body = body.trim_start();
        if body.is_empty() {
            continue;
        }
        let Some(item) = body.strip_prefix('-').filter(|i| i.is_empty() || i.starts_with(' ')) else {
            if indent == 0 {
                (section, pip) = (key(body), None);
                out.flow(section, index + 1, body);
            }
            continue;
        };
        let item = item.trim().trim_matches(['"', '\'']).trim();
        if item.is_empty() {
            continue;
        }
        if item == "pip:" {
            pip = Some(indent);
            continue;
        }
        pip = pip.filter(|at| indent > *at);
        out.push(if pip.is_some() { "pip" } else { section }, index + 1, item);
    }
    out
}

impl Environment {
    fn push(&mut self, section: &str, line: usize, item: &str) {
        match section {
            "channels" => self.channels.push(item.to_owned()),
            "dependencies" => self.packages.push((line, item.to_owned())),
            "pip" => self.pip.push((line, item.to_owned())),
            _ => {}
        }
    }

    /// `channels: [a, b]`
    fn flow(&mut self, section: &'static str, line: usize, body: &str) {
        let list = body.split_once('[').and_then(|(_, l)| l.split_once(']')).map_or("", |(l, _)| l);
        for item in list.split(',').map(|i| i.trim().trim_matches(['"', '\''])).filter(|i| !i.is_empty()) {
            self.push(section, line, item);
        }
    }
}

fn key(body: &str) -> &'static str {
    match body.split(':').next().unwrap_or_default().trim() {
        "channels" => "channels",
        "dependencies" => "dependencies",
        _ => "",
    }
}

/// Without a comment: a `#` at the start or behind a blank.
fn uncommented(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(before, _)| before)
}

/// A specification: channel, name in lower case, and what is said of the version (`=2.5.1=*cuda*`, `>=2`).
pub fn specification(text: &str) -> Option<(Option<String>, String, Option<String>)> {
    let text = text.trim();
    let (channel, rest) = match text.split_once("::") {
        Some((channel, rest)) => (Some(channel.to_owned()), rest),
        None => (None, text),
    };
    let end =
        rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))).unwrap_or(rest.len());
    let (name, version) = rest.split_at(end);
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let version = version.trim();
    Some((channel, name.to_lowercase(), (!version.is_empty()).then(|| version.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_read() {
        let text = b"name: x\nchannels: # of these\n  - pytorch\n- 'conda-forge'\ndependencies:\n  - python=3.10 # c\n  - pip\n  - pip:\n    - torch==2.6\n    # no\n    - --extra-index-url https://x\n  - \"cuda-toolkit=12.4\"\nprefix: /x\n";
        let read = environment(text);
        assert_eq!(read.channels, ["pytorch", "conda-forge"]);
        assert_eq!(read.packages, [(6, "python=3.10".into()), (7, "pip".into()), (12, "cuda-toolkit=12.4".into())]);
        assert_eq!(read.pip, [(9, "torch==2.6".into()), (11, "--extra-index-url https://x".into())]);
        assert_eq!(environment(b"channels: [a, \"b\"]\n").channels, ["a", "b"]);
        assert_eq!(environment(b"\xff\x00"), Environment::default());
    }

    #[test]
    fn specifications_are_read() {
        let read = |text| {
            specification(text).map(|(c, n, v)| format!("{}|{n}|{}", c.unwrap_or_default(), v.unwrap_or_default()))
        };
        assert_eq!(read("pytorch=2.5.1=*cuda*").as_deref(), Some("|pytorch|=2.5.1=*cuda*"));
        assert_eq!(read("nvidia/label/cuda-12.4.0::CUDA").as_deref(), Some("nvidia/label/cuda-12.4.0|cuda|"));
        assert_eq!(read("numpy >=1,<2").as_deref(), Some("|numpy|>=1,<2"));
        assert_eq!(read("cudatoolkit\u{fffc}").as_deref(), Some("|cudatoolkit|\u{fffc}"));
        assert_eq!(read("/x"), None);
    }
}
