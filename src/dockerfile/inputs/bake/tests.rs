use super::*;
use crate::dockerfile::value::Value;

fn arg(inputs: &[BuildInput], target: &str, name: &str) -> Option<Value> {
    let input = inputs.iter().find(|i| i.service_or_target == target).unwrap();
    input.args.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone())
}

fn known(text: &str) -> Option<Value> {
    Some(Value::Known(text.to_owned()))
}

const FILE: &str = r#"
    variable "CUDA" { default = "12.4" }
    variable "TAG" { default = "cu${CUDA}-${PY}" }
    variable "TOKEN" {}
    PY = "3.12"
    group "default" { targets = ["train", "base"] }
    target "base" {
      context = "docker"
      platforms = ["linux/amd64"]
      args = { CUDA_VERSION = CUDA, JOBS = 8, OLD = "x" }
    }
    target "train" {
      inherits = ["base", "nobody"]
      dockerfile = "train.Dockerfile"
      target = "final"
      args = {
        TAG = TAG
        JOBS = 4
        OLD = null
        TOKEN = TOKEN
        WHEN = timestamp()
        FLAVOUR = TOKEN == "" ? "a" : "b"
        NEW = CUDA == "12.4" ? "yes" : "no"
        "QUOTED" = <<EOT
text
EOT
      }
    }
"#;

#[test]
fn arguments_variables_and_inheritance() {
    let inputs = bake(FILE).unwrap();
    assert_eq!(inputs.len(), 2);
    assert_eq!(arg(&inputs, "base", "CUDA_VERSION"), known("12.4"));
    assert_eq!(arg(&inputs, "base", "JOBS"), known("8"));
    assert_eq!(arg(&inputs, "train", "CUDA_VERSION"), known("12.4"));
    assert_eq!(arg(&inputs, "train", "JOBS"), known("4"));
    assert_eq!(arg(&inputs, "train", "TAG"), known("cu12.4-3.12"));
    assert_eq!(arg(&inputs, "train", "OLD"), None);
    assert_eq!(arg(&inputs, "train", "TOKEN"), Some(Value::Unknown));
    assert_eq!(arg(&inputs, "train", "WHEN"), Some(Value::Unknown));
    assert_eq!(arg(&inputs, "train", "FLAVOUR"), Some(Value::OneOf(vec!["a".into(), "b".into()])));
    assert_eq!(arg(&inputs, "train", "NEW"), known("yes"));
    assert_eq!(arg(&inputs, "train", "QUOTED"), known("text\n"));
    let train = &inputs[1];
    assert_eq!(train.context.as_deref(), Some("docker"));
    assert_eq!(train.dockerfile.as_deref(), Some("train.Dockerfile"));
    assert_eq!(train.target.as_deref(), Some("final"));
    assert_eq!(train.platforms, ["linux/amd64"]);
    assert_eq!(train.file().as_deref(), Some("docker/train.Dockerfile"));
    let other = bake("target \"t\" {\n context = basename(\"x\")\n}").unwrap();
    assert_eq!(other[0].file(), None);
}

#[test]
fn a_matrix_gives_a_target_for_each_combination() {
    let inputs = bake(
        r#"target "x" {
             name = "x-${replace}-${item.py}"
             matrix = { replace = ["a", "b"], item = [{ py = "310", torch = "2.5" }, { py = "312", torch = "2.6" }] }
             args = { PY = item.py, TORCH = "${item.torch}+${replace}", SECOND = [1, 2][1] }
           }
           target "y" { inherits = ["x-a-312"] }"#,
    )
    .unwrap();
    assert_eq!(inputs.len(), 4, "x-a-312 is only inherited");
    assert_eq!(arg(&inputs, "x-b-310", "TORCH"), known("2.5+b"));
    assert_eq!(arg(&inputs, "y", "TORCH"), known("2.6+a"));
    assert_eq!(arg(&inputs, "y", "SECOND"), known("2"));
    let merged = super::super::merge(&inputs[..3]);
    assert_eq!(merged[0], ("PY".to_owned(), Value::OneOf(vec!["310".into(), "312".into()])));
}

#[test]
fn json_is_the_same() {
    let inputs = bake(
        r#"{"variable": {"CUDA": {"default": "12.4"}},
            "group": {"all": {"targets": ["t"]}},
            "target": {"u": {"inherits": ["t"]}, "t": {"context": ".", "args": {"A": "v${CUDA}", "B": 2, "C": null, "D": "$x"}}}}"#,
    )
    .unwrap();
    assert_eq!(arg(&inputs, "t", "A"), known("v12.4"));
    assert_eq!(arg(&inputs, "t", "B"), known("2"));
    assert_eq!(arg(&inputs, "t", "C"), None);
    assert_eq!(arg(&inputs, "t", "D"), known("$x"));
}

#[test]
fn errors_have_a_line() {
    let error = bake("target \"a\" {\n  args = {\n").unwrap_err();
    assert!(error.line.is_some_and(|line| line >= 2), "{error:?}");
    assert!(!error.what.contains('\n'), "{error:?}");
    assert_eq!(bake("{\n\n,").unwrap_err().line, Some(3));
    assert!(bake("").unwrap().is_empty());
}

#[test]
fn circles_of_inheritance_end() {
    let inputs = bake(
        r#"target "a" {
             inherits = ["b"]
             args = { A = 1 }
           }
           target "b" {
             inherits = ["a"]
             args = { B = 1 }
           }"#,
    )
    .unwrap();
    assert_eq!(inputs.len(), 1, "b is only inherited: {inputs:?}");
    assert_eq!(arg(&inputs, "a", "B"), known("1"));
}

#[test]
fn hostile_files_are_bounded() {
    let start = std::time::Instant::now();
    for (open, close) in [("(", ")"), ("[", "]"), ("{a=", "}"), ("\"${", "}\""), ("!", ""), ("-", ""), ("f(", ")")]
    {
        for depth in [60, 100_000] {
            let text = format!("x = {}1{}", open.repeat(depth), close.repeat(depth));
            let _ = bake(&text);
        }
    }
    let _ = bake(&format!("x = {}1", "1 + ".repeat(100_000)));
    let _ = bake(&format!("x = {}1", "1 ? 1 : ".repeat(100_000)));
    let _ = bake(&format!("x = a{}", ".a".repeat(100_000)));
    let _ = bake(&"a {".repeat(100_000));
    let _ = bake(&format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)));
    // Each twice the one before; each holding the one before.
    for body in ["\"${vLAST}${vLAST}\"", "[vLAST, vLAST]", "[vLAST]"] {
        let mut text = String::from("v0 = \"x\"\n");
        for level in 1..2000 {
            text.push_str(&format!("v{level} = {}\n", body.replace("LAST", &(level - 1).to_string())));
        }
        text.push_str("target \"t\" { args = { A = v1999 } }");
        assert_eq!(arg(&bake(&text).unwrap(), "t", "A"), Some(Value::Unknown));
    }
    let axes: Vec<String> = (0..40).map(|n| format!("a{n} = [1, 2, 3]")).collect();
    let wide = format!("target \"t\" {{\n matrix = {{ {} }}\n args = {{ A = a1 }}\n}}", axes.join(", "));
    assert_eq!(arg(&bake(&wide).unwrap(), "t", "A"), Some(Value::Unknown));
    let many: String = (0..100_000).map(|n| format!("target \"t{n}\" {{}}\n")).collect();
    assert!(bake(&many).is_err());
    let args = |n: usize| (0..n).map(|n| format!("a{n} = 1\n")).collect::<String>();
    assert!(bake(&format!("target \"t\" {{\nargs = {{\n{} }}\n}}", args(2_000))).is_ok());
    assert!(bake(&format!("target \"t\" {{\nargs = {{\n{} }}\n}}", args(100_000))).is_err());
    assert!(start.elapsed().as_secs() < 120);
}
