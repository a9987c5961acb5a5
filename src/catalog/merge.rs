//! Rows that a user adds to the embedded tables, or puts in their place. What is merged is checked as a whole, by
//! the same laws; what breaks them is pointed out in the file that was added.

use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::{Catalog, CatalogError, FILES, Tables, digest, laws, row_name};

/// A file of rows, called as one of [`FILES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    pub file: String,
    pub text: String,
}

/// What was merged over the embedded rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// Names of the files, sorted.
    pub files: Vec<String>,
    /// Rows that the embedded tables do not have.
    pub added: usize,
    /// Rows and values that stand in the place of embedded ones.
    pub replaced: usize,
}

/// Why rows could not be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    #[error("no table is called {file}")]
    NoSuchFile { file: String },
    #[error("{file}: {source}")]
    Syntax { file: String, source: Box<toml::de::Error> },
    /// Something at a place in the text of the file.
    #[error("{file}: {message}")]
    At { file: String, span: Range<usize>, message: String, help: Option<String> },
    /// A law that the tables break together, at no row that was added.
    #[error("{0}")]
    Whole(CatalogError),
}

/// What tells the rows of a list apart. A list that is not here has rows that are only ever added.
const IDENTITIES: &[(&str, &str, &[&str])] = &[
    ("amd_gpus.toml", "generic", &["target"]),
    ("amd_gpus.toml", "gpu", &["name"]),
    ("amd_gpus.toml", "isa", &["target"]),
    ("arch_variables.toml", "named", &["name"]),
    ("arch_variables.toml", "variable", &["name"]),
    ("base_images.toml", "family", &["name"]),
    ("base_images.toml", "image", &["image", "tag"]),
    ("base_images.toml", "nvidia_cuda_distro", &["distro"]),
    ("build_knobs.toml", "knob", &["project"]),
    ("components.toml", "floor", &["name", "capability"]),
    ("components.toml", "framework", &["name"]),
    ("components.toml", "idle", &["name"]),
    ("components.toml", "profiler", &["name"]),
    ("components.toml", "union", &["name"]),
    ("components.toml", "variant", &["name", "below", "key"]),
    ("components.toml", "vendor", &["name"]),
    ("cuda_tags.toml", "release", &["cuda"]),
    ("cuda_tags.toml", "tag", &["cuda", "flavours", "distros"]),
    ("cudnn.toml", "cudnn", &["version", "cuda"]),
    ("cudnn.toml", "pypi", &["package"]),
    ("cudnn.toml", "tensorrt", &["version"]),
    ("data_libraries.toml", "library", &["name"]),
    ("distros.toml", "distro", &["title"]),
    ("dockerfile_uses.toml", "capability_user", &["name"]),
    ("dockerfile_uses.toml", "conda_channel", &["name"]),
    ("dockerfile_uses.toml", "conda_decider", &["name"]),
    ("drivers.toml", "arch", &["cc"]),
    ("drivers.toml", "branch", &["branch"]),
    ("extensions.toml", "extension", &["project"]),
    ("forward_compat.toml", "activation", &["stack", "mechanism"]),
    ("forward_compat.toml", "class", &["name"]),
    ("forward_compat.toml", "error", &["code"]),
    ("forward_compat.toml", "package", &["name"]),
    ("forward_compat.toml", "require", &["cuda"]),
    ("gpus.toml", "brands", &["name"]),
    ("gpus.toml", "gpu", &["name"]),
    ("instances.toml", "accelerator", &["name"]),
    ("instances.toml", "instance", &["family"]),
    ("intel_gpus.toml", "gpu", &["ip"]),
    ("intel_gpus.toml", "product", &["name"]),
    ("intel_gpus.toml", "runtime", &["name"]),
    ("libraries.toml", "build", &["name", "versions"]),
    ("libraries.toml", "by_choice", &["name"]),
    ("libraries.toml", "compiler", &["name", "file", "from"]),
    ("libraries.toml", "cpu_build", &["name"]),
    ("libraries.toml", "falls_back", &["name"]),
    ("libraries.toml", "gfx_compiler", &["name"]),
    ("libraries.toml", "jit", &["name"]),
    ("libraries.toml", "library", &["soname"]),
    ("libraries.toml", "set", &["name"]),
    ("loading.toml", "capability", &["name"]),
    ("loading.toml", "driver", &["name"]),
    ("loading.toml", "family", &["name"]),
    ("loading.toml", "lookup", &["name"]),
    ("loading.toml", "opens", &["name"]),
    ("presets.toml", "preset", &["name"]),
    ("pytorch.toml", "arch_list", &["torch", "index", "machine", "value"]),
    ("pytorch.toml", "cuobjdump", &["torch", "file"]),
    ("pytorch.toml", "default_wheel", &["torch"]),
    ("pytorch.toml", "package", &["package", "version", "what"]),
    ("pytorch.toml", "python", &["torch", "machine"]),
    ("pytorch.toml", "rocm", &["torch"]),
    ("pytorch.toml", "rocm_arch", &["torch"]),
    ("pytorch.toml", "variant", &["torch", "index"]),
    ("rocm.toml", "base_image", &["pattern"]),
    ("rocm.toml", "driver", &["amdgpu"]),
    ("rocm.toml", "module", &["version"]),
    ("rocm.toml", "policy", &["rule"]),
    ("rocm.toml", "pytorch", &["variants"]),
    ("rocm.toml", "release", &["version"]),
    ("rocm.toml", "soname", &["rocm_major"]),
    ("system_packages.toml", "conda", &["name"]),
    ("system_packages.toml", "package", &["name"]),
    ("system_packages.toml", "source", &["name"]),
    ("toolkits.toml", "driver_only", &["cuda"]),
    ("toolkits.toml", "minor_version_compat", &["cuda_major"]),
    ("toolkits.toml", "release", &["version"]),
    ("toolkits.toml", "toolkit", &["cuda"]),
    ("wheel_cuda.toml", "package", &["package", "versions"]),
    ("wheel_cuda.toml", "pin", &["package", "versions"]),
    ("wheel_cuda.toml", "suffix", &["package"]),
    ("wheel_cuda.toml", "torch", &["version"]),
    ("wheel_indexes.toml", "host", &["prefix"]),
];

/// The names that files of rows may have. Test vectors are no facts, and stay as they are.
pub fn file_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name).filter(|name| !laws::NO_FACTS.contains(name))
}

/// Lists of a file, and what tells their rows apart.
pub fn identities(file: &str) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    IDENTITIES.iter().filter(move |(name, ..)| *name == file).map(|(_, list, keys)| (*list, *keys))
}

/// A row of a file that was added, where it stands there and how messages call it.
struct Placed {
    file: usize,
    /// `[[gpu]] "A100"`, as errors of the merged tables name it.
    name: String,
    span: Range<usize>,
    list: String,
    /// Its place in the merged list.
    index: usize,
    keys: Vec<Key>,
}

/// A key of such a row.
struct Key {
    name: String,
    at: Range<usize>,
    value_at: Range<usize>,
    /// The value, where it is text.
    text: Option<String>,
}

/// The merged tables, and what is known of how they came to be.
struct Merger<'a> {
    additions: &'a [Addition],
    placed: Vec<Placed>,
    merged: Merged,
}

impl Catalog {
    /// The embedded rows with these merged over them.
    pub fn with_rows(additions: &[Addition]) -> Result<Self, MergeError> {
        let mut tables = Tables::read(FILES).map_err(MergeError::Whole)?;
        let mut merger = Merger { additions, placed: Vec::new(), merged: Merged::default() };
        for at in 0..additions.len() {
            merger.add(at, &mut tables)?;
        }
        merger.merged.files = additions.iter().map(|a| a.file.clone()).collect();
        merger.merged.files.sort();
        let mut all: Vec<(String, &str)> = FILES.iter().map(|(n, t)| ((*n).to_owned(), *t)).collect();
        all.extend(additions.iter().map(|a| (format!("added {}", a.file), a.text.as_str())));
        let all: Vec<(&str, &str)> = all.iter().map(|(n, t)| (n.as_str(), *t)).collect();
        match Self::of(tables, digest(&all)) {
            Ok(catalog) => Ok(Self { merged: Some(merger.merged), ..catalog }),
            Err(error) => Err(merger.pointed(error)),
        }
    }
}

impl Merger<'_> {
    fn at(&self, file: usize, span: Range<usize>, message: String, help: Option<String>) -> MergeError {
        let file = self.additions.get(file).map(|a| a.file.clone()).unwrap_or_default();
        MergeError::At { file, span, message, help }
    }

    fn add(&mut self, at: usize, tables: &mut Tables) -> Result<(), MergeError> {
        let Addition { file, text } = &self.additions[at];
        let known = file_names().any(|name| name == file);
        let table = tables.0.iter_mut().find(|(name, _)| name == file).filter(|_| known);
        let Some((_, embedded)) = table else { return Err(MergeError::NoSuchFile { file: file.clone() }) };
        let syntax = |e| MergeError::Syntax { file: file.clone(), source: Box::new(e) };
        let places = DeTable::parse(text).map_err(syntax)?;
        let values: Table = text.parse().map_err(syntax)?;
        for (key, place) in places.get_ref() {
            let (name, value) = (key.get_ref().as_ref(), values.get(key.get_ref().as_ref()));
            let known = embedded.keys().cloned().collect::<Vec<_>>();
            match (embedded.get_mut(name), value, place.get_ref()) {
                (Some(Value::Array(rows)), Some(Value::Array(new)), DeValue::Array(places)) if are_rows(rows) => {
                    for (row, place) in new.iter().zip(places.iter()) {
                        self.row(at, name, rows, row, place)?;
                    }
                }
                (Some(old), Some(new), _) => self.value(at, name, old, new, place)?,
                _ => return Err(self.unknown(at, key.span(), "list or value", name, &known)),
            }
        }
        Ok(())
    }

    /// Adds a row to a list, or puts it in the place of the one that it is another version of.
    fn row(
        &mut self,
        at: usize,
        list: &str,
        rows: &mut Vec<Value>,
        row: &Value,
        place: &Spanned<DeValue<'_>>,
    ) -> Result<(), MergeError> {
        let (Value::Table(new), DeValue::Table(places)) = (row, place.get_ref()) else {
            return Err(self.at(at, place.span(), format!("`{list}` holds rows: write [[{list}]]"), None));
        };
        let trust = ["source", "status", "verified", "note"];
        for key in places.keys() {
            let name: &str = key.get_ref();
            if !trust.contains(&name) && !rows.iter().any(|row| row.get(name).is_some()) {
                let mut known: Vec<String> =
                    rows.iter().filter_map(Value::as_table).flat_map(Table::keys).cloned().collect();
                known.sort();
                known.dedup();
                return Err(self.unknown(at, key.span(), "key", name, &known));
            }
        }
        let file = self.additions[at].file.clone();
        let identity = IDENTITIES.iter().find(|(f, l, _)| *f == file && *l == list).map(|(_, _, keys)| *keys);
        let same = |old: &Value| identity.is_some_and(|keys| keys.iter().all(|k| old.get(*k) == new.get(*k)));
        let index = match rows.iter().position(same) {
            Some(index) => {
                // Of two in one folder, nobody can say which is meant.
                if self.placed.iter().any(|p| p.file == at && p.list == list && p.index == index) {
                    let help = identity.map(|keys| format!("rows of this list differ in {}", keys.join(" and ")));
                    return Err(self.at(at, place.span(), "the row stands above already".to_owned(), help));
                }
                rows[index] = row.clone();
                self.merged.replaced += 1;
                index
            }
            None => {
                rows.push(row.clone());
                self.merged.added += 1;
                rows.len() - 1
            }
        };
        let text = |v: &Value| v.as_str().map(str::to_owned);
        let keys = places.iter().map(|(k, v)| {
            let name = k.get_ref().to_string();
            let value = new.get(&name).and_then(text);
            Key { name, at: k.span(), value_at: v.span(), text: value }
        });
        let name = row_name(list, index, row);
        let list = list.to_owned();
        self.placed.push(Placed { file: at, name, span: place.span(), list, index, keys: keys.collect() });
        Ok(())
    }

    /// A value beside the lists: of the same kind as the embedded one; tables key by key.
    fn value(
        &mut self,
        at: usize,
        name: &str,
        old: &mut Value,
        new: &Value,
        place: &Spanned<DeValue<'_>>,
    ) -> Result<(), MergeError> {
        match (&mut *old, new, place.get_ref()) {
            (Value::Table(old), Value::Table(new), DeValue::Table(places)) => {
                for (key, place) in places {
                    let inner: &str = key.get_ref();
                    match (old.get_mut(inner), new.get(inner)) {
                        (Some(old), Some(new)) => self.value(at, inner, old, new, place)?,
                        (_, Some(new)) => {
                            old.insert(inner.to_owned(), new.clone());
                            self.merged.added += 1;
                        }
                        (_, None) => {}
                    }
                }
                Ok(())
            }
            (old, new, _) if !old.same_type(new) => {
                let message =
                    format!("`{name}` is {} here, and {} in the embedded table", new.type_str(), old.type_str());
                Err(self.at(at, place.span(), message, None))
            }
            (old, new, _) if name == "schema" && old != new => {
                let help = Some(format!("this program reads schema = {old}"));
                Err(self.at(at, place.span(), format!("the rows are of schema {new}"), help))
            }
            (old, new, _) => {
                if old != new {
                    self.merged.replaced += 1;
                }
                *old = new.clone();
                Ok(())
            }
        }
    }

    fn unknown(&self, at: usize, span: Range<usize>, what: &str, name: &str, known: &[String]) -> MergeError {
        let near = super::names::nearest(name, known.iter().map(String::as_str), 1).first().copied();
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.at(at, span, format!("unknown {what} `{name}`"), Some(help))
    }

    /// The error at the row that was added, where it is about one.
    fn pointed(&self, error: CatalogError) -> MergeError {
        let (file, row, what) = match &error {
            CatalogError::Row { file, row, what } => (file.as_str(), row, what),
            CatalogError::Law { file, row, law } => (*file, row, law),
            CatalogError::NoFile { .. } | CatalogError::Syntax { .. } => return MergeError::Whole(error),
        };
        let quoted = |p: &Placed| p.name.find('`').map(|at| p.name[at..].to_owned());
        let of_file = || self.placed.iter().filter(|p| self.additions[p.file].file == file);
        let found = of_file().find(|p| p.name == *row);
        let found = found.or_else(|| of_file().find(|p| quoted(p).is_some_and(|q| row.contains(&q))));
        let Some(found) = found else { return MergeError::Whole(error) };
        let named = |name: &str| what.contains(&format!("`{name}`"));
        let at_key = found.keys.iter().find(|key| named(&key.name)).map(|key| &key.at);
        let said = |text: &Option<String>| text.as_deref().is_some_and(|t| t.len() > 1 && what.contains(t));
        let at_value = || found.keys.iter().find(|key| said(&key.text)).map(|key| &key.value_at);
        let span = at_key.or_else(at_value).unwrap_or(&found.span).clone();
        self.at(found.file, span, format!("{}: {what}", found.name), None)
    }
}

fn are_rows(list: &[Value]) -> bool {
    list.iter().all(Value::is_table) && !list.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(file: &str, text: &str) -> Result<Catalog, MergeError> {
        Catalog::with_rows(&[Addition { file: file.to_owned(), text: text.to_owned() }])
    }

    /// The text that an error points at, its message and help.
    fn points(file: &str, text: &str) -> (String, String) {
        match with(file, text).unwrap_err() {
            MergeError::At { span, message, help, .. } => (
                text[span].lines().next().unwrap_or_default().to_owned(),
                format!("{message} ({})", help.unwrap_or_default()),
            ),
            other => panic!("not pointed: {other}"),
        }
    }

    /// An identity that two embedded rows share would replace the wrong one; a list that is forgotten here would
    /// never replace any.
    #[test]
    fn every_list_has_an_identity_that_tells_its_rows_apart() {
        for (file, text) in FILES.iter().filter(|(f, _)| !laws::NO_FACTS.contains(f)) {
            for (list, rows) in text.parse::<Table>().unwrap() {
                let Value::Array(rows) = rows else { continue };
                if !are_rows(&rows) {
                    continue;
                }
                let keys = IDENTITIES.iter().find(|(f, l, _)| f == file && *l == list);
                let keys = keys.unwrap_or_else(|| panic!("{file}: [[{list}]] has no identity")).2;
                let mut seen = std::collections::BTreeSet::new();
                for row in &rows {
                    let key: Vec<String> = keys.iter().map(|k| format!("{:?}", row.get(*k))).collect();
                    assert!(seen.insert(key.clone()), "{file}: two rows [[{list}]] are {key:?}");
                }
            }
        }
        for (file, list, _) in IDENTITIES {
            let text = FILES.iter().find(|(f, _)| f == file).unwrap().1;
            assert!(text.parse::<Table>().unwrap()[*list].is_array(), "{file}: no [[{list}]]");
        }
    }

    #[test]
    fn rows_are_added_and_replaced() {
        let text = "[[gpu]]\nname = \"NVIDIA X900\"\ncc = \"9.0\"\nclass = \"datacenter\"\nbrand = \"nvidia\"\nsource = \"ours\"\n";
        let catalog = with("gpus.toml", text).unwrap();
        let merged = catalog.merged().unwrap();
        assert_eq!((merged.added, merged.replaced, merged.files.as_slice()), (1, 0, &["gpus.toml".to_owned()][..]));
        assert_eq!(catalog.gpu("x900").unwrap().device.to_string(), "9.0");
        assert_ne!(catalog.digest(), Catalog::embedded().digest());
        assert_eq!(catalog.digest(), with("gpus.toml", text).unwrap().digest());
        assert!(Catalog::embedded().gpu("x900").is_err());
        assert!(Catalog::embedded().merged().is_none());

        let first = &Catalog::embedded().gpus().all()[0];
        let count = Catalog::embedded().gpus().all().len();
        let again = format!(
            "[[gpu]]\nname = \"{}\"\ncc = \"9.0\"\nclass = \"datacenter\"\nbrand = \"tesla\"\nsource = \"ours\"\n",
            first.name
        );
        let catalog = with("gpus.toml", &again).unwrap();
        assert_eq!(catalog.gpus().all().len(), count);
        assert_eq!(catalog.gpus().all()[0].source(), "ours");
        let catalog = with("catalog.toml", "as_of = \"2020-01-01\"\n").unwrap();
        assert_eq!((catalog.as_of(), catalog.merged().unwrap().replaced), ("2020-01-01", 1));
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let row = |keys: &str| format!("# ours\n[[gpu]]\nname = \"NVIDIA X900\"\n{keys}\n");
        let good = "cc = \"9.0\"\nclass = \"datacenter\"\nbrand = \"nvidia\"";
        for (file, text, at, says) in [
            ("gpus.toml", "[[gpus]]\nname = \"x\"\n".to_owned(), "gpus", "did you mean `gpu`?"),
            ("gpus.toml", "gpu = [1]\n".to_owned(), "1", "write [[gpu]]"),
            ("gpus.toml", row("clas = \"datacenter\""), "clas", "did you mean `class`?"),
            ("gpus.toml", row(good), "[[gpu]]", "says neither its source nor its status"),
            ("gpus.toml", row("cc = \"9.0\"\nbrand = \"x\"\nsource = \"o\""), "[[gpu]]", "missing field `class`"),
            (
                "gpus.toml",
                row(&good.replace("9.0", "77.7")) + "source = \"o\"\n",
                "\"77.7\"",
                "no toolkit compiles for 77.7",
            ),
            ("catalog.toml", "schema = 2\n".to_owned(), "2", "schema = 1"),
            ("catalog.toml", "as_of = 5\n".to_owned(), "5", "integer here"),
        ] {
            let (pointed, said) = points(file, &text);
            assert_eq!(pointed, at, "{text}: {said}");
            assert!(said.contains(says), "{text}: {said}");
        }
        let twice = row(good) + "source = \"o\"\n";
        assert!(points("gpus.toml", &(twice.clone() + &twice)).1.contains("stands above already"));
        assert!(matches!(with("gpu.toml", ""), Err(MergeError::NoSuchFile { .. })));
        assert!(matches!(with("require_vectors.toml", ""), Err(MergeError::NoSuchFile { .. })));
        assert!(matches!(with("gpus.toml", "[["), Err(MergeError::Syntax { .. })));
    }
}
