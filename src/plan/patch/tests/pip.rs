//! Wheels.

use super::*;

pub fn torch(version: &str, index: &str) -> Change {
    wheel("torch", Some(version), &format!("=={version}"), Some(index))
}

fn wheel(package: &str, version: Option<&str>, specifier: &str, index: Option<&str>) -> Change {
    Change::Wheel {
        package: package.to_owned(),
        version: version.map(str::to_owned),
        specifier: specifier.to_owned(),
        index: index.map(|i| (i.to_owned(), format!("{INDEX}/{i}"))),
        built: None,
        cuda: None,
    }
}

#[test]
fn version_and_index_are_changed_where_they_stand() {
    for (run, change, want) in [
        (
            "RUN pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/cu124",
            torch("2.7.0", "cu128"),
            "RUN pip install torch==2.7.0 --index-url https://download.pytorch.org/whl/cu128",
        ),
        (
            "RUN uv pip install \"torch==2.7.0+cu126\" --extra-index-url=https://download.pytorch.org/whl/cu126/",
            torch("2.7.0", "cu128"),
            "RUN uv pip install \"torch==2.7.0+cu128\" --extra-index-url=https://download.pytorch.org/whl/cu128/",
        ),
        // A pin that means the same stays.
        (
            "RUN pip install 'torch==2.7' -i https://download.pytorch.org/whl/cu126",
            torch("2.7.0", "cu128"),
            "RUN pip install 'torch==2.7' -i https://download.pytorch.org/whl/cu128",
        ),
        // An index of its own for what has no other packages beside it.
        (
            "RUN pip install torch torchvision",
            torch("2.7.0", "cu128"),
            "RUN pip install torch==2.7.0 torchvision --index-url https://download.pytorch.org/whl/cu128",
        ),
        (
            "RUN pip install torch numpy && echo done",
            torch("2.7.0", "cu128"),
            "RUN pip install torch==2.7.0 numpy --extra-index-url https://download.pytorch.org/whl/cu128 && echo done",
        ),
        // A comparison needs quotes in a shell.
        (
            "RUN pip install bitsandbytes -q",
            wheel("bitsandbytes", None, ">=0.48", None),
            "RUN pip install \"bitsandbytes>=0.48\" -q",
        ),
        ("RUN pip install foo[x]==1.0", wheel("foo", Some("2.0"), "==2.0", None), "RUN pip install foo[x]==2.0"),
        (
            "RUN uv pip install torch==2.7.0 --torch-backend cu126",
            torch("2.7.0", "cu128"),
            "RUN uv pip install torch==2.7.0 --torch-backend cu128",
        ),
        // Somebody's mirror stays the mirror.
        (
            "RUN pip install torch==2.7.0 -i https://mirror.sjtu.edu.cn/pytorch-wheels/cu126",
            torch("2.7.0", "cu128"),
            "RUN pip install torch==2.7.0 -i https://mirror.sjtu.edu.cn/pytorch-wheels/cu128",
        ),
        (
            "RUN [\"pip\", \"install\", \"torch==2.6.0\", \"-i\", \"https://download.pytorch.org/whl/cu124\"]",
            torch("2.7.0", "cu128"),
            "RUN [\"pip\", \"install\", \"torch==2.7.0\", \"-i\", \"https://download.pytorch.org/whl/cu128\"]",
        ),
    ] {
        let file = format!("{CUDA}{run}\n");
        assert_eq!(done(&file, change), format!("{CUDA}{want}\n"));
    }
}

#[test]
fn values_are_followed_to_what_sets_them() {
    for (before, after) in [
        // ARG, in the stage and before the first FROM; ENV; a variable of the shell; a part of a value.
        (
            "FROM a\nARG CU=cu126\nRUN pip install torch==2.7.0 --index-url https://download.pytorch.org/whl/${CU}\n",
            "ARG CU=cu128\n",
        ),
        (
            "ARG CU=126\nFROM a\nARG CU\nRUN pip install torch==2.7.0+cu${CU} -i https://download.pytorch.org/whl/cu$CU\n",
            "ARG CU=128\n",
        ),
        (
            "FROM a\nENV TORCH=2.6.0 CU=\"cu124\"\nRUN pip install torch==$TORCH -i https://download.pytorch.org/whl/$CU\n",
            "ENV TORCH=2.7.0 CU=\"cu128\"\n",
        ),
        (
            "FROM a\nRUN CU=cu126 && pip install torch==2.7.0 -i https://download.pytorch.org/whl/$CU\n",
            "RUN CU=cu128 &&",
        ),
        (
            "FROM a\nENV PIP_INDEX_URL=https://download.pytorch.org/whl/cu126\nRUN pip install torch==2.7.0\n",
            "ENV PIP_INDEX_URL=https://download.pytorch.org/whl/cu128\n",
        ),
        (
            "FROM a\nARG V=2.6.0\nARG CU=cu124\nRUN pip install torch==${V}+${CU} -f https://download.pytorch.org/whl/torch_stable.html\n",
            "ARG V=2.7.0\nARG CU=cu128\n",
        ),
        (
            "FROM a\nARG REQ=\"torch==2.6.0\"\nRUN pip install ${REQ} -i https://download.pytorch.org/whl/cu128\n",
            "ARG REQ=\"torch==2.7.0\"\n",
        ),
    ] {
        let new = done(before, torch("2.7.0", "cu128"));
        assert!(new.contains(after), "{new}");
    }
}

#[test]
fn what_cannot_be_changed_surely_is_left_with_its_reason() {
    let arg = format!(
        "ARG CU=126\nFROM example.org/base:cu${{CU}}\nARG CU\nRUN pip install torch==2.7.0 -i {INDEX}/cu${{CU}}\n"
    );
    for (file, words) in [
        (arg.as_str(), "CU is used in line 2 too"),
        ("FROM a\nARG V\nRUN pip install torch==$V\n", "not known"),
        ("FROM a\nRUN pip install torch==2.6.0 --index-url $PYPI\n", "which index it takes is not known"),
        (
            "FROM a\nRUN pip install --pre torch==2.7.0 -i https://download.pytorch.org/whl/nightly/cu126\n",
            "nightly",
        ),
        ("FROM a\nRUN pip install numpy\n", "no command of the file asks for torch"),
        (
            "FROM a\nRUN pip install https://x/torch-2.6.0%2Bcu124-cp312-cp312-linux_x86_64.whl\n",
            "an address of its own",
        ),
        ("FROM a\nRUN conda install pytorch=2.5.1 pytorch-cuda=12.1 -c pytorch\n", "takes it from conda"),
        ("FROM a\nRUN pip install torch==2.7.0 -i https://download.pytorch.org/whl/cu128\n", "already"),
        (
            "FROM a\nARG A=1\nRUN pip install torch==2.$((A+1)).0 -i https://download.pytorch.org/whl/cu128\n",
            "not known",
        ),
    ] {
        let why = left(file, torch("2.7.0", "cu128"));
        assert!(why.contains(words), "{why}\n{file}");
    }
    // Quotes within quotes.
    let file = "FROM a\nRUN bash -c \"pip install bitsandbytes\"\n";
    let why = left(file, wheel("bitsandbytes", None, ">=0.48", None));
    assert!(why.contains("inside of other quotes"), "{why}");
    let file = "FROM a\nRUN pip install torch==2.7.0 -i https://download.pytorch.org/whl/cu126\n";
    assert!(left(file, wheel("torch", Some("2.7.0"), "==2.7.0", None)).contains("name the default one"));
}

#[test]
fn requirements_of_files_are_named() {
    let file = "FROM a\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n";
    let files = [("requirements.txt", "numpy\ntorch==2.6.0\n")];
    let (new, left) = after(file, &files, &plan_of([torch("2.7.0", "cu128")]), None);
    assert_eq!(new, file);
    let why = left[0].as_deref().unwrap();
    assert!(why.contains("requirements.txt:2 asks for it: write torch==2.7.0 from"), "{why}");
}

#[test]
fn what_is_pinned_beside_it_is_to_be_reviewed() {
    let file = format!("{CUDA}RUN pip install torch==2.6.0+cu124 torchvision==0.21.0+cu124 -i {INDEX}/cu124\n");
    let (new, left) = after(&file, &[], &plan_of([torch("2.7.0", "cu128")]), None);
    assert!(new.contains("torch==2.7.0+cu128 torchvision==0.21.0+cu128 -i"), "{new}");
    assert!(left[0].as_deref().unwrap().contains("torchvision 0.21.0 beside it wants torch==2.6.0"), "{left:?}");
    // The same release from another index needs no look.
    let file = format!("{CUDA}RUN pip install torch==2.7.0 torchvision==0.22.0 -i {INDEX}/cu126\n");
    assert_eq!(after(&file, &[], &plan_of([torch("2.7.0", "cu128")]), None).1, [None]);
    // So does a plan that moves both.
    let file = format!("{CUDA}RUN pip install torch==2.6.0 torchvision==0.21.0 -i {INDEX}/cu124\n");
    let both = [torch("2.7.0", "cu128"), wheel("torchvision", Some("0.22.0"), "==0.22.0", Some("cu128"))];
    let (new, left) = after(&file, &[], &plan_of(both), None);
    assert!(new.contains("torch==2.7.0 torchvision==0.22.0 -i https://download.pytorch.org/whl/cu128\n"), "{new}");
    assert_eq!(left, [None, None]);
}

#[test]
fn conda_takes_another_version_only_to_be_reviewed() {
    let file = "FROM a\nRUN conda install -y onnxruntime=1.17\n";
    let (new, left) = after(file, &[], &plan_of([wheel("onnxruntime", Some("1.20.1"), "==1.20.1", None)]), None);
    assert!(new.contains("onnxruntime=1.20.1\n"), "{new}");
    assert!(left[0].as_deref().unwrap().contains("conda's build"), "{left:?}");
}
