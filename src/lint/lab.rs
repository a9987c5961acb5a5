//! Images put together by hand, for the rules' tests.

use std::sync::Arc;

use crate::model::*;

pub const SITE: &str = "opt/v/lib/python3.11/site-packages";

/// An image put together by hand.
pub struct Lab(pub Evidence);

pub fn at(path: &str) -> ImagePath {
    ImagePath::new(path.replace("SITE", SITE))
}

impl Lab {
    pub fn new() -> Self {
        Self(Evidence {
            schema: Evidence::SCHEMA,
            image: ImageFacts {
                reference: "lab".into(),
                platform: Some(Platform::default()),
                ..ImageFacts::default()
            },
            libc: Some(Libc::Glibc { path: at("lib/libc.so.6"), version: Some("2.31".into()) }),
            ..Evidence::default()
        })
    }

    pub fn env(&mut self, variables: &[(&str, &str)]) {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.0.image.config.env.extend(variables);
    }

    pub fn component(&mut self, name: &str, version: &str) -> usize {
        let known = self.0.components.iter().position(|c| c.name == name);
        known.unwrap_or_else(|| {
            self.0.packages.push(Package::new(Manager::Pip, name, Some(version.into())));
            self.0.components.push(Component {
                name: name.into(),
                version: Some(version.into()),
                manager: Manager::Pip,
                root: at("SITE"),
            });
            self.0.components.len() - 1
        })
    }

    /// Adds a library of a package; `code`: with device code. Files must come in the order of their paths.
    pub fn library(&mut self, path: &str, package: (&str, &str), soname: &str, code: bool) -> &mut ElfFacts {
        let component = Some(self.component(package.0, package.1));
        let mut facts = FileFacts::new(FileKind::SharedObject, 1 << 20);
        facts.elf = Some(ElfFacts { machine: 62, soname: Some(soname.into()), ..ElfFacts::default() });
        if code {
            let item = Item {
                arch: "sm_80".parse().unwrap(),
                form: Form::Sass,
                kind: 2,
                isa: None,
                packing: Packing::None,
                toolkit: None,
            };
            facts.modules.push(Module {
                container: Container::Fatbin,
                section: None,
                relocatable: false,
                items: vec![ItemCount { item, entries: 1, bytes: 1 }],
                count: 1,
                first: 0,
            });
        }
        let file =
            EvidenceFile { path: at(path), layer: None, facts: Arc::new(facts), component, in_archive: false };
        self.0.files.push(file);
        assert!(self.0.files.is_sorted_by(|a, b| a.path < b.path), "{path} is out of order");
        Arc::get_mut(&mut self.0.files.last_mut().unwrap().facts).unwrap().elf.as_mut().unwrap()
    }

    pub fn torch(&mut self) {
        self.library("SITE/torch/lib/libtorch_cuda.so", ("torch", "2.7.0+cu126"), "libtorch_cuda.so", true);
    }

    pub fn loads(&mut self, path: &str) -> &mut Loads {
        let file = self.0.file_at(&at(path)).unwrap();
        if self.0.loads_of(file).is_none() {
            let row = Loads { file, needs: Vec::new(), opens: Vec::new(), unmet: Vec::new() };
            self.0.loads.push(row);
            self.0.loads.sort_by_key(|l| l.file);
        }
        self.0.loads.iter_mut().find(|l| l.file == file).unwrap()
    }

    pub fn misses(&mut self, path: &str, name: &str) {
        let outcome = Outcome::Missing { ldconfig: None, refused: None };
        self.loads(path).needs.push(Need { name: name.into(), outcome });
    }

    pub fn finds(&mut self, path: &str, name: &str, place: &str, law: Law) {
        let outcome = Outcome::Found { path: at(place), law };
        self.loads(path).needs.push(Need { name: name.into(), outcome });
    }
}
