//! Whole files.

use std::collections::BTreeMap;

use super::*;
use crate::dockerfile::parse::parse;
use crate::dockerfile::reading::{Inputs, read};

/// Files by path.
struct Tree(BTreeMap<&'static str, &'static str>);

impl Files for Tree {
    fn read(&self, path: &str) -> Option<Result<Vec<u8>, String>> {
        self.0.get(path).map(|t| Ok(t.as_bytes().to_vec()))
    }
}

fn asked(text: &str, files: &[(&'static str, &'static str)]) -> (Reading, Asks) {
    let reading = read(parse(text.as_bytes()), &Inputs::default());
    let asks = asks(&reading, &Tree(files.iter().copied().collect()));
    (reading, asks)
}

fn place(reading: &Reading, asked: &Asked) -> String {
    match asked {
        Asked::Here(span) => reading.document.slice(*span).to_owned(),
        Asked::File { file, line } => format!("{file}:{line}"),
    }
}

fn requirement(reading: &Reading, r: &Requirement) -> String {
    let specifiers: Vec<String> = r.specifiers.iter().map(|(o, v)| format!("{o}{v}")).collect();
    let unsure = if r.unsure { "?" } else { "" };
    format!("{}{}{unsure} ({})", r.name, specifiers.join(","), place(reading, &r.asked))
}

/// The requirements of the only install.
fn requirements(text: &str, files: &[(&'static str, &'static str)]) -> Vec<String> {
    let (reading, asks) = asked(text, files);
    assert_eq!(asks.pip.len(), 1, "{text}");
    asks.pip[0].requirements.iter().map(|r| requirement(&reading, r)).collect()
}

fn text(setting: &Setting) -> &str {
    setting.text.value.known().unwrap_or("?")
}

#[test]
fn pip_takes_options_from_packages() {
    let (reading, asks) = asked(
        "FROM x\nENV PIP_EXTRA_INDEX_URL=\"https://e\"\nRUN pip3 --no-cache-dir install -qU --index-url=https://i/cu124 -f links \\\n  --timeout 100 'torch==2.6.0' torchvision \"numpy<2\" -e . ./csrc -e python[all] --no-build-isolation --no-binary :all: --pre $MORE\n",
        &[],
    );
    let pip = &asks.pip[0];
    let all: Vec<String> = pip.requirements.iter().map(|r| requirement(&reading, r)).collect();
    assert_eq!(all, ["torch==2.6.0 (torch==2.6.0)", "torchvision (torchvision)", "numpy<2 (numpy<2)"]);
    let index = pip.index.as_ref().unwrap();
    assert_eq!((text(index), reading.document.slice(index.span)), ("https://i/cu124", "https://i/cu124"));
    let extra = &pip.extra_indexes[0];
    assert_eq!((text(extra), reading.document.slice(extra.span)), ("https://e", "https://e"));
    assert_eq!(text(&pip.find_links[0]), "links");
    assert_eq!(
        pip.local.iter().map(|l| l.value.known()).collect::<Vec<_>>(),
        [Some("."), Some("./csrc"), Some("python[all]")]
    );
    assert_eq!(pip.no_binary, [":all:"]);
    assert!(pip.no_build_isolation && pip.pre && pip.upgrade && pip.more && !pip.no_deps);
}

#[test]
fn installers_of_python_are_known() {
    for (command, expected) in [
        ("python3.11 -m pip install a", Some(PythonTool::Pip)),
        ("$VENV/bin/python -m pip install a", Some(PythonTool::Pip)),
        ("/opt/conda/bin/pip install a", Some(PythonTool::Pip)),
        ("$PIP install a", Some(PythonTool::Pip)),
        ("uv pip install --system a", Some(PythonTool::UvPip)),
        ("uv --no-cache pip install a", Some(PythonTool::UvPip)),
        ("python -m uv pip install a", Some(PythonTool::UvPip)),
        ("uv add a", Some(PythonTool::Project)),
        ("poetry add a", Some(PythonTool::Project)),
        ("pipx install a", Some(PythonTool::Pip)),
        ("pip download a", Some(PythonTool::Pip)),
        ("pip uninstall a", None),
        ("pip list", None),
        ("pip", None),
        ("uv venv", None),
        ("python -m venv a", None),
    ] {
        let (_, asks) = asked(&format!("FROM x\nRUN {command}\n"), &[]);
        assert_eq!(asks.pip.first().map(|p| p.tool), expected, "{command}");
        if expected.is_some() {
            assert_eq!(asks.pip[0].requirements[0].name, "a", "{command}");
        }
    }
}

#[test]
fn values_that_are_not_sure_are_told() {
    assert_eq!(
        requirements("FROM x\nARG V\nRUN for p in a b; do pip install $p torch==$V; done\n", &[]),
        ["a? ($p)", "b? ($p)", "torch? (torch==$V)"]
    );
    assert_eq!(requirements("FROM x\nARG V=2.6\nRUN pip install torch==$V\n", &[]), ["torch==2.6 (torch==$V)"]);
}

#[test]
fn settings_come_from_where_they_are_in_force() {
    let index = |lines: &str| {
        let (reading, asks) = asked(&format!("FROM x\n{lines}\n"), &[]);
        asks.pip[0].index.as_ref().map(|i| (text(i).to_owned(), reading.document.slice(i.span).to_owned()))
    };
    let at = |t: &str| Some((t.to_owned(), t.to_owned()));
    assert_eq!(index("ENV PIP_INDEX_URL=https://a\nRUN pip install x"), at("https://a"));
    assert_eq!(index("ARG PIP_INDEX_URL='https://a'\nRUN pip install x"), at("https://a"));
    assert_eq!(index("RUN PIP_INDEX_URL=https://b pip install x"), at("https://b"));
    assert_eq!(index("RUN export PIP_INDEX_URL=https://b && pip install x"), at("https://b"));
    assert_eq!(index("RUN PIP_INDEX_URL=https://b; pip install x"), None);
    assert_eq!(index("RUN pip config --global set global.index-url https://c\nRUN pip install x"), at("https://c"));
    assert_eq!(index("RUN pip install x\nRUN pip config set global.index-url https://c"), None);
    assert_eq!(index("ENV UV_DEFAULT_INDEX=https://d\nRUN uv pip install x"), at("https://d"));
    assert_eq!(index("ENV PIP_INDEX_URL=https://d\nRUN uv pip install x"), None);
    assert_eq!(index("RUN uv pip install x --default-index n=https://d"), at("https://d"));
}

#[test]
fn requirements_files_are_found() {
    let files: &[(&str, &str)] = &[
        ("docker/req/base.txt", "torch==2.6\n-r more.txt\n--extra-index-url https://e\n"),
        ("docker/req/more.txt", "numpy\n-r base.txt\n"),
        ("requirements.txt", "root\n"),
    ];
    for lines in [
        "WORKDIR /app\nCOPY docker/req/base.txt .\nRUN pip install -r base.txt",
        "COPY docker/req/base.txt /tmp/x.txt\nRUN pip install -r /tmp/x.txt",
        "COPY ./docker/req/*.txt /tmp/\nRUN cd /tmp && pip install -rbase.txt",
        "COPY docker /d\nRUN pip install --requirement=/d/req/base.txt",
        "WORKDIR /app\nCOPY . .\nRUN pip install -r docker/req/base.txt",
        "RUN --mount=type=bind,source=docker/req,target=/r pip install -r /r/base.txt",
        "COPY docker/req/base.txt .\nRUN pip install -r base.txt",
        "ARG D=docker\nCOPY ${D}/req/base.txt /x/\nRUN pip install -r /x/base.txt",
        "COPY docker/req /x\nFROM y\nCOPY --from=0 /x/base.txt /z/\nRUN pip install -r /z/base.txt",
        "COPY docker/req /x/ \nFROM x as w\nFROM w as v\nFROM v\nRUN pip install -r docker/req/base.txt",
    ] {
        let text = format!("FROM x\n{lines}\n");
        let (reading, asks) = asked(&text, files);
        let pip = asks.pip.last().unwrap();
        let all: Vec<String> = pip.requirements.iter().map(|r| requirement(&reading, r)).collect();
        assert_eq!(all, ["torch==2.6 (docker/req/base.txt:1)", "numpy (docker/req/more.txt:1)"], "{text}");
        assert_eq!(pip.extra_indexes.len(), 1);
        assert_eq!(pip.files.iter().map(|f| f.1).collect::<Vec<_>>(), [true]);
        assert!(asks.missing.is_empty(), "{text}");
    }
}

#[test]
fn files_of_elsewhere_are_missing() {
    for lines in [
        "RUN git clone https://h/x && cd x && pip install -r requirements.txt",
        "WORKDIR /w\nRUN git clone https://h/x y\nRUN pip install -r /w/y/requirements.txt",
        "RUN pip install -r https://h/requirements.txt",
        "RUN pip install -r nowhere.txt",
        "RUN tar xf x.tar && cd x && pip install -r requirements.txt",
        "RUN pip freeze > requirements.txt && pip install -r requirements.txt",
    ] {
        let (reading, asks) = asked(&format!("FROM x\n{lines}\n"), &[("requirements.txt", "wrong\n")]);
        let pip = asks.pip.last().unwrap();
        assert!(pip.requirements.is_empty(), "{lines}");
        assert!(!pip.files[0].1);
        assert!(reading.document.slice(asks.missing[0].1).ends_with(".txt"), "{lines}");
    }
}

#[test]
fn files_that_the_dockerfile_writes_are_read() {
    for lines in [
        "COPY <<EOF /r.txt\ntorch==2.6\nEOF\nRUN pip install -r /r.txt",
        "RUN cat <<EOF > /r.txt && pip install -r /r.txt\ntorch==2.6\nEOF",
        "RUN echo torch==2.6 > /r.txt && pip install -r /r.txt",
    ] {
        let (_, asks) = asked(&format!("FROM x\n{lines}\n"), &[]);
        assert_eq!(asks.pip[0].requirements[0].pinned(), Some("2.6"), "{lines}");
    }
}

#[test]
fn projects_are_read_at_their_locked_versions() {
    let project = "[project]\ndependencies = [\"torch\"]\n[dependency-groups]\ndev = [\"pytest\"]\n[[tool.uv.index]]\nurl = \"https://d/cu124\"\n";
    let lock = "[[package]]\nname = \"torch\"\nversion = \"2.6.0+cu124\"\n[[package]]\nname = \"pytest\"\nversion = \"8\"\n";
    let text = "FROM x\nWORKDIR /a\nCOPY pyproject.toml uv.lock ./\nRUN uv sync --frozen --no-dev\n";
    assert_eq!(
        requirements(text, &[("pyproject.toml", project), ("uv.lock", lock)]),
        ["torch==2.6.0+cu124 (uv.lock:1)"]
    );
    assert_eq!(
        requirements("FROM x\nCOPY . .\nRUN uv sync\n", &[("pyproject.toml", project)]),
        ["torch (pyproject.toml:2)", "pytest (pyproject.toml:4)"]
    );
    let (_, asks) = asked(text, &[("pyproject.toml", project)]);
    assert_eq!(text_of(&asks.pip[0].extra_indexes), ["https://d/cu124"]);
    let (_, asks) = asked(text, &[]);
    assert_eq!(asks.missing[0].0, "pyproject.toml");
}

#[test]
fn projects_in_folders_bring_what_they_need() {
    let project = "[project]\ndependencies = [\"torch\"]\n[project.optional-dependencies]\ngpu = [\"cupy\"]\n";
    let files = &[("src/pyproject.toml", project), ("pyproject.toml", "[project]\ndependencies = [\"wrong\"]\n")];
    let names = |lines: &str| {
        let (_, asks) = asked(&format!("FROM x\n{lines}\n"), files);
        asks.pip[0].requirements.iter().map(|r| r.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("WORKDIR /a\nCOPY src .\nRUN pip install -e '.[gpu]'"), ["torch", "cupy"]);
    assert!(names("WORKDIR /a\nCOPY src .\nRUN pip install --no-deps .").is_empty());
    assert!(names("RUN tar xf x.tar && cd x && pip install .").is_empty());
}

fn text_of(settings: &[Setting]) -> Vec<&str> {
    settings.iter().map(text).collect()
}

#[test]
fn system_packages_are_read() {
    let system = |command: &str| {
        let (reading, asks) = asked(&format!("FROM x\nRUN {command}\n"), &[]);
        let show = |p: &SystemPackage| {
            let version = p.version.as_ref().map(|v| format!("={v}")).unwrap_or_default();
            format!("{}{version}{} ({})", p.name, if p.unsure { "?" } else { "" }, reading.document.slice(p.span))
        };
        asks.system.iter().flat_map(|s| &s.packages).map(show).collect::<Vec<_>>()
    };
    assert_eq!(
        system(
            "apt-get update && apt-get -qq install -y -t jammy --no-install-recommends -o A::B=1 a b=1.2* \"c\""
        ),
        ["a (a)", "b=1.2* (b=1.2*)", "c (c)"]
    );
    assert_eq!(
        system("dnf install -y --setopt=a=b --enablerepo x cuda-toolkit-12-4"),
        ["cuda-toolkit-12-4 (cuda-toolkit-12-4)"]
    );
    assert_eq!(system("apk add --no-cache -t .deps gcc"), ["gcc (gcc)"]);
    assert_eq!(system("zypper --non-interactive in -r x gcc"), ["gcc (gcc)"]);
    assert_eq!(
        system("dpkg -i /tmp/cuda-keyring_1.1-1_all.deb"),
        ["cuda-keyring=1.1-1 (/tmp/cuda-keyring_1.1-1_all.deb)"]
    );
    assert_eq!(system("sudo apt install cuda-toolkit-$V"), ["cuda-toolkit-? (cuda-toolkit-$V)"]);
    assert!(system("apt-get remove a && apt-get purge b && dnf clean all && dpkg -l x && rpm -qa i").is_empty());
}

#[test]
fn conda_specifications_are_read() {
    let (reading, asks) = asked(
        "FROM x\nCOPY e.yml .\nRUN conda install -y -n base -c pytorch -c nvidia 'pytorch==2.5.1' nvidia::cuda-toolkit=12.4 \"numpy>=1, <2\" && mamba env create -f e.yml\n",
        &[("e.yml", "channels: [c]\ndependencies:\n  - python=3.10\n  - pip:\n    - torch==2.6\n")],
    );
    let show = |(name, version, asked): &(String, Option<String>, Asked)| {
        format!("{name} {} ({})", version.clone().unwrap_or_default(), place(&reading, asked))
    };
    assert_eq!(asks.conda[0].channels, ["pytorch", "nvidia"]);
    assert_eq!(
        asks.conda[0].packages.iter().map(show).collect::<Vec<_>>(),
        [
            "pytorch ==2.5.1 (pytorch==2.5.1)",
            "cuda-toolkit =12.4 (nvidia::cuda-toolkit=12.4)",
            "numpy >=1, <2 (numpy>=1, <2)"
        ]
    );
    assert_eq!(asks.conda[1].packages.iter().map(show).collect::<Vec<_>>(), ["python =3.10 (e.yml:3)"]);
    assert_eq!(requirement(&reading, &asks.conda[1].pip[0]), "torch==2.6 (e.yml:5)");
    let (_, asks) = asked("FROM x\nRUN conda clean -a && conda env list && conda update conda\n", &[]);
    assert_eq!(asks.conda.len(), 1);
}

#[test]
fn builds_are_read() {
    let builds = |command: &str| {
        let (reading, asks) = asked(&format!("FROM x\nWORKDIR /w\nARG A=80\nRUN {command}\n"), &[]);
        let show = |b: &SourceBuild| {
            let defines: Vec<String> = b
                .defines
                .iter()
                .map(|(n, s)| format!("{n}={}@{}", text(s), reading.document.slice(s.span)))
                .collect();
            format!("{:?} {} {}", b.tool, b.dir.known().unwrap_or("?"), defines.join(" "))
        };
        asks.builds.iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(
        builds("cmake -B build -DA:STRING=\"80;90\" -D B=$A ../s && cmake --build build"),
        ["Cmake /s A=80;90@80;90 B=80@$A"]
    );
    assert_eq!(builds("make -j8 -C src CUDA_ARCH=\"sm_80\" all"), ["Make /w/src CUDA_ARCH=sm_80@sm_80"]);
    assert_eq!(
        builds("nvcc -gencode arch=compute_80,code=sm_80 -arch=sm_90 x.cu"),
        ["Nvcc /w -gencode=arch=compute_80,code=sm_80@arch=compute_80,code=sm_80 -arch=sm_90@sm_90"]
    );
    assert_eq!(
        builds("cd x && python setup.py bdist_wheel && pip wheel . && python3 -m build"),
        ["Setuptools /w/x ", "Setuptools /w/x ", "Setuptools /w/x "]
    );
    assert_eq!(builds("cargo build --release --features cuda,x"), ["Cargo /w --features=cuda,x@cuda,x"]);
    assert_eq!(
        builds("bazel build --config=cuda --action_env=TF_CUDA_COMPUTE_CAPABILITIES=8.0 //x"),
        ["Bazel /w --config=cuda@cuda TF_CUDA_COMPUTE_CAPABILITIES=8.0@8.0"]
    );
    assert!(builds("python x.py && cargo fmt && cmake --version").is_empty());
}

#[test]
fn clones_are_read() {
    let clones = |command: &str| {
        let (reading, asks) = asked(&format!("FROM x\nWORKDIR /w\nRUN {command}\n"), &[]);
        let show = |c: &GitClone| {
            let pinned = if c.pinned { " pinned" } else { "" };
            format!("{} {}{pinned}", reading.document.slice(c.url_span), c.dir.known().unwrap_or("?"))
        };
        asks.clones.iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(clones("git clone --depth 1 https://h/a.git"), ["https://h/a.git /w/a"]);
    assert_eq!(clones("git clone -b v1 https://h/a.git d"), ["https://h/a.git /w/d pinned"]);
    assert_eq!(clones("git -C /s clone \"git@h:a/b\" --branch=v1"), ["git@h:a/b /s/b pinned"]);
    assert_eq!(
        clones("git clone https://h/a && cd a && git checkout v1 && cd .. && git clone https://h/b"),
        ["https://h/a /w/a pinned", "https://h/b /w/b"]
    );
    assert_eq!(clones("git clone https://h/a && git -C a checkout abc"), ["https://h/a /w/a pinned"]);
    assert_eq!(
        clones("git clone https://h/a && git clone https://h/b && cd a && git reset --hard x"),
        ["https://h/a /w/a pinned", "https://h/b /w/b"]
    );
}

#[test]
fn hostile_files_end() {
    let many = format!("FROM x\n{}", "COPY . /a\nRUN pip install -r /a/b\n".repeat(3000));
    let start = std::time::Instant::now();
    asked(&many, &[]);
    asked("FROM x\nRUN pip install -r a\n", &[("a", "-r a\n-r ./a\n-r ../a\n\\")]);
    let deep = format!("FROM x\nRUN pip install {}\n", "a[".repeat(50_000));
    asked(&deep, &[]);
    assert!(start.elapsed().as_secs() < 10);
}

proptest::proptest! {
    #[test]
    fn any_arguments_are_read(
        words in proptest::collection::vec("(pip|uv|python|apt-get|conda|env|git|cmake|nvcc|install|create|clone|sync|-[a-zA-Z]{1,3}|--[a-z-]{1,12}=?|-D[a-z=:]{0,6}|[a-z]{1,4}[\\[@=<>~!;:/.#+*é\"'$-]{0,3}[0-9a-z.]{0,4})", 0..12),
        file in "(([a-z]{1,3}|-r |-e |[\\[\\]{}=\"'#;@ \\\\$]){0,6}\n){0,6}",
    ) {
        struct Any(String);
        impl Files for Any {
            fn read(&self, _: &str) -> Option<Result<Vec<u8>, String>> {
                Some(Ok(self.0.clone().into_bytes()))
            }
        }
        let text = format!("FROM x\nCOPY . .\nRUN {}\n", words.join(" "));
        let reading = read(parse(text.as_bytes()), &Inputs::default());
        let asks = asks(&reading, &Any(file));
        for package in asks.system.iter().flat_map(|s| &s.packages) {
            assert!(text.get(package.span.start..package.span.end).is_some());
        }
        for setting in asks.pip.iter().flat_map(|p| p.index.iter().chain(&p.extra_indexes)) {
            assert!(text.get(setting.span.start..setting.span.end).is_some());
        }
        for requirement in asks.pip.iter().flat_map(|p| &p.requirements) {
            assert!(!requirement.name.is_empty());
        }
    }
}
