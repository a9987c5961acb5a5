//! Builds from source.

use super::*;

pub fn source(component: &str, form: KnobForm, name: &str, value: &str, sass: &str) -> Change {
    Change::Source {
        component: component.to_owned(),
        project: None,
        form,
        setting: (name.to_owned(), value.to_owned()),
        built: Built {
            sass: sass.split_whitespace().map(|a| a.parse().unwrap()).collect(),
            ptx: Vec::new(),
            toolkit: None,
            ..Built::default()
        },
        install: String::new(),
    }
}

fn torch_list(component: &str) -> Change {
    source(component, KnobForm::Env, "TORCH_CUDA_ARCH_LIST", "8.0;12.0", "sm_80 sm_120")
}

const EXT: &str = "RUN pip install --no-build-isolation ./some-cuda-ext\n";

#[test]
fn a_list_that_is_there_is_changed_in_place() {
    let cmake = source("app", KnobForm::Cmake, "CMAKE_CUDA_ARCHITECTURES", "80-real;120-real", "sm_80 sm_120");
    for (file, change, want) in [
        (
            format!("{CUDA}ENV TORCH_CUDA_ARCH_LIST=\"7.5 8.0\"\n{EXT}"),
            torch_list("some-cuda-ext"),
            "LIST=\"8.0 12.0\"\n",
        ),
        (format!("{CUDA}ENV TORCH_CUDA_ARCH_LIST=8.0\n{EXT}"), torch_list("some-cuda-ext"), "LIST=\"8.0;12.0\"\n"),
        (
            format!("ARG A=8.0\n{CUDA}ARG A\nENV TORCH_CUDA_ARCH_LIST=$A\n{EXT}"),
            torch_list("some-cuda-ext"),
            "ARG A=\"8.0;12.0\"\n",
        ),
        (
            format!("{CUDA}RUN TORCH_CUDA_ARCH_LIST='8.0' python setup.py install\n"),
            torch_list("some-cuda-ext"),
            "RUN TORCH_CUDA_ARCH_LIST='8.0;12.0' python",
        ),
        (
            format!("{CUDA}RUN cmake -B b -DCMAKE_CUDA_ARCHITECTURES=80 . && cmake --build b\n"),
            cmake.clone(),
            "ARCHITECTURES=\"80-real;120-real\" . &&",
        ),
        // Told in nvcc's own way.
        (
            format!(
                "{CUDA}RUN nvcc -gencode arch=compute_75,code=sm_75 \\\n  -gencode arch=compute_80,code=sm_80 -o x x.cu\n"
            ),
            cmake.clone(),
            "RUN nvcc -gencode arch=compute_80,code=sm_80 \\\n  -gencode arch=compute_120,code=sm_120 -o x x.cu\n",
        ),
        (
            format!("{CUDA}RUN nvcc -arch=sm_80 -o x x.cu\n"),
            source("x", KnobForm::Flag, "-arch", "sm_120", "sm_120"),
            "nvcc -arch=sm_120 -o",
        ),
        (
            format!(
                "{CUDA}ENV CMAKE_ARGS=\"-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=80-real\"\nRUN pip install llama-cpp-python --no-binary llama-cpp-python\n"
            ),
            source(
                "llama-cpp-python",
                KnobForm::Cmake,
                "CMAKE_CUDA_ARCHITECTURES",
                "80-real;120-real",
                "sm_80 sm_120",
            ),
            "ARCHITECTURES=80-real;120-real\"\n",
        ),
    ] {
        let (new, _) = after(&file, &[], &plan_of([change]), None);
        assert!(new.contains(want), "{new}");
    }
}

#[test]
fn a_build_that_is_told_nothing_gets_a_line_before_it() {
    // In the image: an argument, which stays out of its environment.
    let file = format!("{CUDA}RUN pip install torch\n# kernels\n{EXT}CMD [\"x\"]\n");
    let new = done(&file, torch_list("some-cuda-ext"));
    assert!(new.contains("# kernels\nARG TORCH_CUDA_ARCH_LIST=\"8.0;12.0\"\nRUN pip install --no-build"), "{new}");
    // In a stage of its own, or on a base that may set it: ENV.
    let file =
        format!("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04 AS b\n{EXT}FROM ubuntu:24.04\nCOPY --from=b /x /x\n");
    let new = done(&file, torch_list("some-cuda-ext"));
    assert_eq!(lines(&file, &new), ["ENV TORCH_CUDA_ARCH_LIST=\"8.0;12.0\""]);
    let file = format!("FROM example.org/own\n{EXT}");
    assert!(done(&file, torch_list("some-cuda-ext")).contains("ENV TORCH"));
    // A known project, by its repository.
    let file = format!(
        "{CUDA}RUN pip install ninja\nRUN pip install git+https://github.com/Dao-AILab/flash-attention@v2.8.3\n"
    );
    let knob = source("flash_attn", KnobForm::Env, "FLASH_ATTN_CUDA_ARCHS", "80;120", "sm_80 sm_120");
    let new = done(&file, knob);
    assert!(new.contains("ARG FLASH_ATTN_CUDA_ARCHS=\"80;120\"\nRUN pip install git+"), "{new}");
    // Line ends are the file's own.
    let file = file.replace('\n', "\r\n");
    assert!(done(&file, torch_list("flash_attn")).contains("12.0\"\r\nRUN pip install git+"));
}

#[test]
fn cmake_make_and_arguments_are_told_as_they_take_it() {
    let file = format!("{CUDA}RUN git clone https://example.org/kern && cmake -S kern -B b && cmake --build b\n");
    let cmake = source("kern", KnobForm::Cmake, "CMAKE_CUDA_ARCHITECTURES", "80-real;120-real", "sm_80 sm_120");
    let (new, _) = after(&file, &[], &plan_of([cmake]), None);
    assert!(
        new.contains("cmake -S kern -B b -DCMAKE_CUDA_ARCHITECTURES=\"80-real;120-real\" && cmake --build"),
        "{new}"
    );
    let file = format!("{CUDA}RUN make -C /src/nccl-tests MPI=0\n");
    let make =
        source("nccl-tests", KnobForm::Make, "MY_GENCODE", "-gencode=arch=compute_120,code=sm_120", "sm_120");
    assert!(done(&file, make).contains("MPI=0 MY_GENCODE=\"-gencode=arch=compute_120,code=sm_120\"\n"));
    let file = format!("{CUDA}ARG MY_ARCHS\n{EXT}");
    let arg = source("some-cuda-ext", KnobForm::Arg, "MY_ARCHS", "8.0 12.0", "sm_80 sm_120");
    assert!(done(&file, arg).contains("ARG MY_ARCHS=\"8.0 12.0\"\n"));
    let file = format!("{CUDA}RUN CMAKE_ARGS=-DGGML_CUDA=on pip install llama-cpp-python\n");
    let cmake = source("llama_cpp_python", KnobForm::Cmake, "CMAKE_CUDA_ARCHITECTURES", "120-real", "sm_120");
    let new = done(&file, cmake);
    assert!(new.contains("RUN CMAKE_ARGS=\"-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=120-real\" pip"), "{new}");
    // CMake below pip: the variable that it takes from the environment.
    let file = format!("{CUDA}{EXT}");
    let cmake = source("some-cuda-ext", KnobForm::Cmake, "CMAKE_CUDA_ARCHITECTURES", "120-real", "sm_120");
    assert!(done(&file, cmake).contains("ARG CUDAARCHS=\"120-real\"\nRUN"));
}

#[test]
fn what_is_not_built_there_is_left() {
    for (file, words) in [
        (format!("{CUDA}RUN pip install flash-attn==2.8.3\n"), "line 2 installs what is built elsewhere"),
        (format!("{CUDA}RUN pip install numpy\n"), "no instruction of the file builds flash_attn"),
        (format!("{CUDA}RUN make -C a x\nRUN nvcc -o b b.cu\n"), "no instruction of the file builds flash_attn"),
    ] {
        let why = left(&file, torch_list("flash_attn"));
        assert!(why.contains(words), "{why}");
    }
    let file = format!("{CUDA}ENV TORCH_CUDA_ARCH_LIST=\"12.0 8.0\"\n{EXT}");
    assert!(left(&file, torch_list("some-cuda-ext")).contains("says so already"));
    let file = format!("{CUDA}ARG A=8\nENV TORCH_CUDA_ARCH_LIST=\"${{A}}.0\"\n{EXT}");
    assert!(left(&file, torch_list("some-cuda-ext")).contains("made of parts"));
    for (value, words) in
        [("--threads 1", "the option --cuda-arch"), ("-gencode arch=compute_80,code=sm_80", "option")]
    {
        let file =
            format!("{CUDA}RUN NVCC_APPEND_FLAGS='{value}' pip install --no-build-isolation ./some-cuda-ext\n");
        let flag = source("some-cuda-ext", KnobForm::Flag, "--cuda-arch", "120", "sm_120");
        assert!(left(&file, flag).contains(words), "options that come on top are not the list");
    }
    let file = format!("{CUDA}RUN make -C nccl NVCC_GENCODE=\"-gencode=arch=compute_80,code=sm_80 -O3\"\n");
    let list = source("nccl", KnobForm::Make, "NVCC_GENCODE", "-gencode=arch=compute_120,code=sm_120", "sm_120");
    assert!(left(&file, list).contains("holds other options too"));
    let file = format!("{CUDA}{EXT}");
    let flag = source("some-cuda-ext", KnobForm::Flag, "--cuda-arch", "120", "sm_120");
    assert!(left(&file, flag).contains("give the command of line 2 the option"));
    let file = format!("{CUDA}ONBUILD {EXT}");
    let _ = left(&file, torch_list("some-cuda-ext"));
}

#[test]
fn a_build_that_is_only_probably_it_is_to_be_reviewed() {
    let file = format!("{CUDA}RUN nvcc -arch=sm_80 -o /opt/k.so k.cu\n");
    let (new, left) =
        after(&file, &[], &plan_of([source("opt/k.so", KnobForm::Flag, "-arch", "sm_120", "sm_120")]), None);
    assert!(new.contains("-arch=sm_120"), "{new}");
    assert!(left[0].as_deref().unwrap().contains("line 2 is taken for the build of opt/k.so"), "{left:?}");
}

#[test]
fn two_components_of_one_instruction_get_both_their_lines() {
    let file = format!(
        "{CUDA}RUN pip install git+https://github.com/Dao-AILab/flash-attention git+https://github.com/NVlabs/tiny-cuda-nn\n"
    );
    let flash = source("flash_attn", KnobForm::Env, "FLASH_ATTN_CUDA_ARCHS", "120", "sm_120");
    let tcnn = source("tinycudann", KnobForm::Env, "TCNN_CUDA_ARCHITECTURES", "120", "sm_120");
    let (new, _) = after(&file, &[], &plan_of([flash, tcnn]), None);
    let want = "ARG FLASH_ATTN_CUDA_ARCHS=\"120\"\nARG TCNN_CUDA_ARCHITECTURES=\"120\"\nRUN pip";
    assert!(new.contains(want), "{new}");
}
