//! Values that are not to be seen: of build arguments whose names say so.

/// Words of names whose values are secret.
const WORDS: [&str; 8] = ["TOKEN", "SECRET", "PASSW", "CREDENTIAL", "PRIVATE", "AUTH", "APIKEY", "API_KEY"];
/// Bytes from which on a value is hidden: shorter ones stand everywhere by chance.
const LEAST: usize = 4;
const MASK: &[u8] = b"***";

/// The values, the longest first.
#[derive(Debug, Default)]
pub struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    /// Of `NAME=VALUE` and, with the environment's value, `NAME`.
    pub fn of(build_args: &[String]) -> Self {
        let value = |arg: &String| match arg.split_once('=') {
            Some((name, value)) => is_secret(name).then(|| value.as_bytes().to_vec()),
            None if is_secret(arg) => std::env::var_os(arg).map(|v| v.as_encoded_bytes().to_vec()),
            None => None,
        };
        let mut values: Vec<Vec<u8>> = build_args.iter().filter_map(value).filter(|v| v.len() >= LEAST).collect();
        values.sort_by_key(|v| std::cmp::Reverse(v.len()));
        Self(values)
    }

    /// A line without them.
    pub fn hidden(&self, line: &[u8]) -> Vec<u8> {
        let mut line = line.to_vec();
        for value in &self.0 {
            let mut out = Vec::with_capacity(line.len());
            let mut at = 0;
            for found in memchr::memmem::find_iter(&line, value) {
                out.extend_from_slice(line.get(at..found).unwrap_or_default());
                out.extend_from_slice(MASK);
                at = found + value.len();
            }
            out.extend_from_slice(line.get(at..).unwrap_or_default());
            line = out;
        }
        line
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word)) || name.split('_').any(|part| part == "KEY" || part == "PAT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_names_are_hidden() {
        let secrets = Secrets::of(&["HF_TOKEN=hf_abc".into(), "SSH_KEY=hf_abcdef".into(), "MAX_JOBS=hf_a".into()]);
        let hidden = |line: &str| String::from_utf8(secrets.hidden(line.as_bytes())).unwrap();
        assert_eq!(hidden("ARG HF_TOKEN=hf_abc hf_abcdef hf_a\n"), "ARG HF_TOKEN=*** *** hf_a\n");
        assert_eq!(hidden("hf_abchf_abc"), "******");
        assert!(!is_secret("TORCH_CUDA_ARCH_LIST") && !is_secret("MONKEY"));
    }
}
