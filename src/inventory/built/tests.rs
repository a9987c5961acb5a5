use super::*;
use crate::stream::{Plain, Stream};

/// Version and claims that a file's text tells.
fn told(path: &str, text: &str) -> Result<String, String> {
    let project = wants(path.as_bytes()).unwrap();
    let fact = read(project, &mut Stream::new(Plain(text.as_bytes()), None))?;
    let Fact::Built { version, said, import } = fact else { panic!("{fact:?}") };
    assert!(path.split('/').any(|p| p == import));
    let said = said.iter().map(|s| format!(" {:?}={}", s.kind, s.value)).collect::<String>();
    Ok(format!("{}{said}", version.as_deref().unwrap_or("-")))
}

fn torch(text: &str) -> Result<String, String> {
    told("site/torch/version.py", text)
}

#[test]
fn files_are_found_in_their_site() {
    assert_eq!(wants(b"torch/version.py"), Some(Project::Torch));
    assert_eq!(wants(b"v/site-packages/torch/version.py"), Some(Project::Torch));
    assert_eq!(wants(b"v/site-packages/pytorch/version.py"), None);
    assert_eq!(wants(b"s/tensorflow/python/platform/build_info.py"), Some(Project::Tensorflow));
}

#[test]
fn torch_says_what_it_was_built_for() {
    let generated = "from typing import Optional\n\n\
                     __all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n\
                     __version__ = '2.7.0+cu126'\ndebug = False\ncuda: Optional[str] = '12.6'\n\
                     git_version = '134179474539648ba7dee1317959529fbd0e7f89'\nhip: Optional[str] = None\n";
    assert_eq!(torch(generated).unwrap(), "2.7.0+cu126 Cuda=12.6");
    let plain = "__version__=\"2.7.0+cu126\"\r\ncuda=\"12.6\"  # built\r\n";
    assert_eq!(torch(plain).unwrap(), "2.7.0+cu126 Cuda=12.6");
    let cpu = "__version__ = '2.7.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\nxpu = None\n";
    assert_eq!(torch(cpu).unwrap(), "2.7.0+cpu CpuOnly=cpu");
    let rocm =
        "__version__ = '2.7.0+rocm6.3'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.3.42131-fa1d09cbd'\n";
    assert_eq!(torch(rocm).unwrap(), "2.7.0+rocm6.3 Rocm=6.3.42131-fa1d09cbd");
    let xpu = "__version__ = '2.7.0+xpu'\ncuda = None\nhip = None\nxpu: Optional[str] = '20250000'\n";
    assert_eq!(torch(xpu).unwrap(), "2.7.0+xpu Xpu=20250000");
    assert_eq!(torch("__version__ = '2.7.0'\n").unwrap(), "2.7.0");
    assert!(torch("cuda = 'open\n").is_err());
}

#[test]
fn others_say_it_in_their_own_words() {
    // torchvision 0.22.1, onnxruntime-gpu 1.31.1, onnxruntime 1.32.0, tensorflow 2.21.0, tensorflow-cpu 2.16.1,
    // paddlepaddle 3.3.0, xformers 0.0.35: their files, shortened.
    let vision = "__version__ = '0.22.1+cu126'\ngit_version = '59a3e1f9f78cfe44cb989877cc6f4ea77c8a75ca'\n\
                  if _check_cuda_version() > 0:\n    cuda = _check_cuda_version()\n";
    let tensorflow = "import collections\n\nbuild_info = collections.OrderedDict([('cpu_compiler', 'clang'), \
                      ('cuda_compute_capabilities', ['sm_60', 'compute_90']), ('cuda_version', '12.5.1'), \
                      ('cudnn_version', '9'), ('is_cuda_build', True), ('is_rocm_build', False)])\n";
    let cpu = "build_info = collections.OrderedDict([('is_cuda_build', False), ('is_rocm_build', False)])\n";
    let old =
        "is_rocm_build = False\nis_cuda_build = True\ncuda_version_number = '10.1'\ncudnn_version_number = '7'\n";
    let paddle = "full_version     = '3.3.0'\nnccl_version     = '0'\ncuda_version     = 'False'\ncudnn_version    = \
                  'False'\nhip_version      = None\nxpu_xre_version  = 'False'\n";
    let xformers =
        r#"{"version": {"cuda": 1208, "hip": null, "torch": "2.10.0+cu128"}, "env": {"NVCC_FLAGS": ""}}"#;
    for (path, text, expected) in [
        ("torchvision/version.py", vision, "0.22.1+cu126 Cuda=12.6"),
        ("torchaudio/version.py", "__version__ = '2.7.1+cpu'\n", "2.7.1+cpu CpuOnly=cpu"),
        ("tensorflow/python/platform/build_info.py", tensorflow, "- Cuda=12.5.1 Cudnn=9"),
        ("tensorflow/python/platform/build_info.py", cpu, "- CpuOnly=cpu"),
        ("tensorflow/python/platform/build_info.py", old, "- Cuda=10.1 Cudnn=7"),
        (
            "onnxruntime/capi/build_and_package_info.py",
            "package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n",
            "1.31.1 Cuda=13.0",
        ),
        (
            "onnxruntime/capi/build_and_package_info.py",
            "package_name = 'onnxruntime'\n__version__ = '1.32.0'\n",
            "1.32.0 CpuOnly=cpu",
        ),
        (
            "onnxruntime/capi/build_and_package_info.py",
            "package_name = 'onnxruntime-openvino'\n__version__ = '1.24.1'\n",
            "1.24.1",
        ),
        ("paddle/version/__init__.py", paddle, "- CpuOnly=cpu"),
        (
            "paddle/version/__init__.py",
            "cuda_version = '11.8'\ncudnn_version = '8.6.0'\n",
            "- Cuda=11.8 Cudnn=8.6.0",
        ),
        ("xformers/cpp_lib.json", xformers, "- Cuda=12.8"),
    ] {
        assert_eq!(told(path, text).unwrap(), expected, "{path}");
    }
    assert!(told("xformers/cpp_lib.json", "{\"version\": ").is_err());
}
