//! What a few lines of Python do about a GPU that is not there.

/// What becomes of it without a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asks {
    /// It says so.
    Prints,
    /// It ends with an error.
    Fails,
}

/// Expressions that are false, or zero, without a GPU.
const TESTS: &[&str] = &["cuda.is_available()", "cuda.device_count()", "is_gpu_available()"];

/// Calls that raise without a GPU.
const CALLS: &[&str] = &[
    "torch.cuda.get_device_name(",
    "torch.cuda.get_device_capability(",
    "torch.cuda.get_device_properties(",
    "torch.cuda.current_device(",
    "torch.cuda.init(",
    "torch.cuda.synchronize(",
    "device=\"cuda\"",
    "device='cuda'",
    ".cuda()",
    ".to('cuda')",
    ".to(\"cuda\")",
];

/// What a script asks of a GPU; the worst of it.
pub fn asks(script: &str) -> Option<Asks> {
    let lines: Vec<&str> = script.split(['\n', ';']).map(str::trim).filter(|l| !l.starts_with('#')).collect();
    let tests = |line: &str| TESTS.iter().any(|t| line.contains(t));
    let guarded = ["if ", "try:", " else ", " and ", "def ", "class ", "lambda"]
        .iter()
        .any(|g| lines.iter().any(|l| l.contains(g) && !ends(l)));
    let mut worst = None;
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        let denied = line.starts_with("if not ") && (ends(line) || (line.ends_with(':') && ends(next)));
        let asserts = line.starts_with("assert ") && !line.starts_with("assert not ") && !line.contains(" or ");
        let refuses = tests(line) && (asserts || denied || (ends(line) && !line.contains("if not")));
        let calls = CALLS.iter().any(|c| line.contains(c)) && !guarded && !script.contains("is_available");
        let found = if refuses || calls {
            Asks::Fails
        } else if tests(line) && line.contains("print(") {
            Asks::Prints
        } else {
            continue;
        };
        worst = worst.max(Some(found));
    }
    worst
}

/// Whether a statement ends the program.
fn ends(line: &str) -> bool {
    line.contains("exit(") || line.contains("raise ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_fail_print_or_do_neither() {
        use Asks::*;
        for (script, want) in [
            ("import torch; assert torch.cuda.is_available()", Some(Fails)),
            ("import torch\nassert torch.cuda.is_available(), 'no GPU'", Some(Fails)),
            ("import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)", Some(Fails)),
            ("import torch\nif not torch.cuda.is_available():\n    raise RuntimeError('x')", Some(Fails)),
            ("import torch; print(torch.cuda.get_device_name(0))", Some(Fails)),
            ("import torch; torch.zeros(1).cuda()", Some(Fails)),
            ("import torch; print(torch.cuda.is_available())", Some(Prints)),
            (
                "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else 'cpu')",
                Some(Prints),
            ),
            ("import torch", None),
            ("import torch; assert not torch.cuda.is_available()", None),
            ("import torch; assert torch.version.cuda", None),
            ("import torch\nif torch.cuda.is_available():\n    torch.zeros(1).cuda()", None),
            ("import torch\ntry:\n  torch.zeros(1).cuda()\nexcept Exception: pass", None),
            ("# assert torch.cuda.is_available()", None),
            ("", None),
        ] {
            assert_eq!(asks(script), want, "{script}");
        }
    }
}
