#!/bin/bash
# make.sh [--archive] [--real] OUT [CASE...]   builds the field cases as real images, daemon-less and without a GPU.
#
# Per case: OUT/CASE/rootfs, OUT/CASE/oci (an OCI layout, tag latest, packed by umoci), OUT/CASE/imagelint.toml.
# What imagelint must say about each stands in expect.tsv; check.py compares.
# Needs gcc, umoci, skopeo, python3. PTXAS, PTXAS13 and FATBINARY name the compilers; where they are unset, pip fetches
# NVIDIA's wheels into TOOLS (default OUT/tools).  --archive also writes OUT/CASE.tar (oci-archive).  --real takes the
# libraries and programs of some cases (s9 s10 s11 s17 s17b cublas-lt-older cublas-lt-newer) whole from their wheels,
# where it otherwise builds small ones that ask and offer the same names: 2.3 GB of downloads, kept in TOOLS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
archive=; real=
while :; do case ${1:-} in --archive) archive=1 ;; --real) real=1 ;; *) break ;; esac; shift; done
mkdir -p "$1"; out=$(cd "$1" && pwd); shift
only=" $* "

tools=${TOOLS:-$out/tools}
fetch() { # WHEEL VERSION: unpacked at $tools/WHEEL-VERSION
    [ -d "$tools/$1-$2" ] || {
        local platforms=() p; for p in {2_{28..5},2014,2010,1}; do platforms+=(--platform "manylinux${p/#2_/_2_}_x86_64"); done
        pip download -q --no-deps --only-binary=:all: --python-version 3.11 "${platforms[@]}" -d "$tools/wheels" "$1==$2"
        python3 -m zipfile -e "$tools/wheels/${1//-/_}-$2"-*.whl "$tools/$1-$2"
        chmod -R +x "$tools/$1-$2"
    }
}
if [ -z "${PTXAS:-}" ] || [ -z "${PTXAS13:-}" ] || [ -z "${FATBINARY:-}" ]; then
    fetch nvidia-cuda-nvcc-cu12 12.9.86
    fetch nvidia-cuda-nvcc 13.5.37
    PTXAS=${PTXAS:-$tools/nvidia-cuda-nvcc-cu12-12.9.86/nvidia/cuda_nvcc/bin/ptxas}
    PTXAS13=${PTXAS13:-$tools/nvidia-cuda-nvcc-13.5.37/nvidia/cu13/bin/ptxas}
    FATBINARY=${FATBINARY:-$tools/nvidia-cuda-nvcc-13.5.37/nvidia/cu13/bin/fatbinary}
fi
export PTXAS PTXAS13 FATBINARY
export SOURCE_DATE_EPOCH=1767225600

site=opt/v/lib/python3.11/site-packages
name=; root=; arch=; env=(); labels=(); entry=

# --- words of a recipe ------------------------------------------------------------------------------------
wanted() { # CASE [ARCH]: starts a case, or says no when others were asked for
    [ "$only" = "  " ] || [[ $only = *" $1 "* ]] || return 1
    name=$1; arch=${2:-amd64}; env=(); labels=(); entry=; root=$out/$1/rootfs
    rm -rf "${out:?}/$1"; mkdir -p "$root"
    echo "$name"
}
file() { mkdir -p "$root/$(dirname "$1")"; cat >"$root/$1"; } # PATH < text
fat() { # PATH ITEM...
    local path=$1; shift
    mkdir -p "$root/$(dirname "$path")"
    local machine=; [ $arch != arm64 ] || machine=aarch64
    MACHINE=$machine "$here/mkfat.sh" "$root/$path" "$@"
}
lib() { # PATH SONAME [NEEDED...]: a host-side library without device code
    local path=$1 soname=$2; shift 2
    local d; d=$(mktemp -d); local args=()
    for n in "$@"; do echo | gcc -shared -nostdlib -Wl,-soname,"$n" -x c - -o "$d/$n"; args+=("-l:$n"); done
    mkdir -p "$root/$(dirname "$path")"
    echo "int imagelint_case;" | gcc -shared -nostdlib -Wl,--build-id=none -Wl,-z,max-page-size=4096 -s -Wl,-soname,"$soname" \
        -x c - -x none -L"$d" -Wl,--no-as-needed "${args[@]}" -o "$root/$path"
    rm -rf "$d"
}
dist() { # NAME VERSION [FILE...]: pip's metadata, FILEs as its RECORD
    local info=$site/${1//-/_}-$2.dist-info n=$1 v=$2; shift 2
    printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$n" "$v" | file "$info/METADATA"
    { for f in "$@" "${info##*/}/METADATA" "${info##*/}/RECORD"; do echo "$f,,"; done; } | file "$info/RECORD"
}
torch() { # VERSION CUDA ITEM...
    local version=$1 cuda=$2; shift 2
    fat $site/torch/lib/libtorch_cuda.so "$@"
    printf "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n__version__ = '%s'\ndebug = False\ncuda: Optional[str] = '%s'\ngit_version = '0000000000000000000000000000000000000000'\nhip: Optional[str] = None\n" \
        "$version" "$cuda" | file $site/torch/version.py
    dist torch "$version" torch/lib/libtorch_cuda.so torch/version.py
}
so() { # PATH SONAME WORD...: a library that asks and offers (mklib.sh)
    local machine=; [ $arch != arm64 ] || machine=aarch64
    MACHINE=$machine "$here/mklib.sh" "$root/$1" "${@:2}"
}
gpu() { # PATH SONAME [WORD...]: a CUDA library with the function by which the cases call it; NVIDIA's versions are named as the library
    local symbol
    case $2 in
        libcudart.so.*) symbol=cudaMalloc ;; libcublas.so.*) symbol=cublasSgemm_v2 ;; libcublasLt.so.*) symbol=cublasLtMatmul ;;
        libcudnn*.so.*) symbol=cudnnCreate ;; libcusparse.so.*) symbol=cusparseCreate ;; libcufft.so.*) symbol=cufftExecC2C ;;
        libcurand.so.*) symbol=curandCreateGenerator ;; libnccl.so.*) symbol=ncclAllReduce ;; libnvrtc.so.*) symbol=nvrtcCompileProgram ;;
        *) echo "which function has $2?" >&2; return 1 ;;
    esac
    so "$1" "$2" "has:$symbol@$2" "${@:3}"
}
calls() { # SONAME...: the words by which a library calls them
    local n; for n in "$@"; do case $n in
        libcudart.so.*) echo "asks:cudaMalloc@$n=$n" ;; libcublas.so.*) echo "asks:cublasSgemm_v2@$n=$n" ;;
        libcublasLt.so.*) echo "asks:cublasLtMatmul@$n=$n" ;; libcudnn.so.*) echo "asks:cudnnCreate@$n=$n" ;;
        libcusparse.so.*) echo "asks:cusparseCreate@$n=$n" ;; libcufft.so.*) echo "asks:cufftExecC2C@$n=$n" ;;
        libcurand.so.*) echo "asks:curandCreateGenerator@$n=$n" ;; libnccl.so.*) echo "asks:ncclAllReduce@$n=$n" ;;
        *) echo "needs:$n" ;;
    esac; done
}
jitlink() { # FROM TO: the words for a libnvJitLink.so.12 of CUDA 12.TO (FROM 0)
    local m f; for m in $(seq "$1" "$2"); do
        for f in Create Destroy AddData Complete GetLinkedCubin GetErrorLog; do echo "has:__nvJitLink${f}_12_$m@libnvJitLink.so.12"; done
    done
}
asks_jitlink() { # MINOR: what cuSPARSE of CUDA 12.MINOR calls
    local f; for f in Create Destroy AddData Complete GetLinkedCubin GetErrorLog; do echo "asks:__nvJitLink${f}_12_$1@libnvJitLink.so.12=libnvJitLink.so.12"; done
}
ptxas() { # PATH RELEASE BUILD NEWEST...: a program with the strings by which ptxas tells its release and its targets
    local path=$1 release=$2 build=$3 words=() a; shift 3
    for a in 50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a "$@"; do words+=("says:compute_$a" "says:sm_$a"); done
    so "$path" - "says:Cuda compilation tools, release $release, V$build" "says:Build cuda_$release.r$release/compiler.0" "${words[@]}"
}
wheel() { # NAME...: nvidia-NAME-cu12 of CUDA 12.8
    local n; for n in "$@"; do case $n in
        cuda-runtime) gpu $site/nvidia/cuda_runtime/lib/libcudart.so.12 libcudart.so.12
            dist nvidia-cuda-runtime-cu12 12.8.90 nvidia/cuda_runtime/lib/libcudart.so.12 ;;
        cublas) gpu $site/nvidia/cublas/lib/libcublas.so.12 libcublas.so.12 'rpath:$ORIGIN' "$(calls libcublasLt.so.12)"
            gpu $site/nvidia/cublas/lib/libcublasLt.so.12 libcublasLt.so.12 'rpath:$ORIGIN'
            dist nvidia-cublas-cu12 12.8.4.1 nvidia/cublas/lib/libcublas.so.12 nvidia/cublas/lib/libcublasLt.so.12 ;;
        cudnn-front) # the dispatcher alone
            gpu $site/nvidia/cudnn/lib/libcudnn.so.9 libcudnn.so.9 'rpath:$ORIGIN' says:libcudnn_{graph,ops,cnn,adv}.so
            dist nvidia-cudnn-cu12 9.10.2.21 nvidia/cudnn/lib/libcudnn.so.9 ;;
        cudnn) wheel cudnn-front; local s files=(nvidia/cudnn/lib/libcudnn.so.9)
            gpu $site/nvidia/cudnn/lib/libcudnn_graph.so.9 libcudnn_graph.so.9 'runpath:$ORIGIN' \
                says:libcudnn_{engines_precompiled,engines_runtime_compiled,heuristic}.so says:libcuda.so.1
            for s in ops cnn adv engines_precompiled engines_runtime_compiled heuristic; do
                gpu $site/nvidia/cudnn/lib/libcudnn_$s.so.9 libcudnn_$s.so.9 'runpath:$ORIGIN' needs:libcudnn_graph.so.9
                files+=(nvidia/cudnn/lib/libcudnn_$s.so.9)
            done
            dist nvidia-cudnn-cu12 9.10.2.21 "${files[@]}" nvidia/cudnn/lib/libcudnn_graph.so.9 ;;
        cusparse) gpu $site/nvidia/cusparse/lib/libcusparse.so.12 libcusparse.so.12 'runpath:$ORIGIN/../../nvjitlink/lib:$ORIGIN' $(asks_jitlink 8)
            dist nvidia-cusparse-cu12 12.5.8.93 nvidia/cusparse/lib/libcusparse.so.12 ;;
        nvjitlink) so $site/nvidia/nvjitlink/lib/libnvJitLink.so.12 libnvJitLink.so.12 $(jitlink 0 8)
            dist nvidia-nvjitlink-cu12 12.8.93 nvidia/nvjitlink/lib/libnvJitLink.so.12 ;;
        nvrtc-front) # without its builtins
            gpu $site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12 libnvrtc.so.12 'runpath:$ORIGIN:' says:libnvrtc-builtins.so.12.8 \
                'says:nvrtc: error: failed to open libnvrtc-builtins.so.12.8.'
            dist nvidia-cuda-nvrtc-cu12 12.8.93 nvidia/cuda_nvrtc/lib/libnvrtc.so.12 ;;
        nvrtc) wheel nvrtc-front
            so $site/nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8 libnvrtc-builtins.so.12.8 has:getArchBuiltins_v1
            dist nvidia-cuda-nvrtc-cu12 12.8.93 nvidia/cuda_nvrtc/lib/libnvrtc.so.12 nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8 ;;
        nccl) gpu $site/nvidia/nccl/lib/libnccl.so.2 libnccl.so.2
            dist nvidia-nccl-cu12 2.27.3 nvidia/nccl/lib/libnccl.so.2 ;;
        *) echo "which wheel is $n?" >&2; return 1 ;;
    esac; done
}
whole_torch() { # VERSION CUDA NEEDED... -- ITEM...: torch's libraries as the wheel lays them, with its RPATH
    local version=$1 cuda=$2 needed=() d path= l=torch/lib; shift 2
    while [ "$1" != -- ]; do needed+=("$1"); shift; done; shift
    for d in cublas cuda_cupti cuda_nvrtc cuda_runtime cudnn cufft curand cusolver cusparse cusparselt nccl nvtx cufile; do path+="\$ORIGIN/../../nvidia/$d/lib:"; done
    path="rpath:$path\$ORIGIN"
    local cudart=libcudart.so.${cuda%%.*}
    torch "$version" "$cuda" "$@"
    so $site/$l/libc10.so libc10.so "$path"
    so $site/$l/libc10_cuda.so libc10_cuda.so "$path" needs:libc10.so $(calls "$cudart")
    so $site/$l/libtorch_cpu.so libtorch_cpu.so "$path" needs:libc10.so
    so $site/$l/libtorch_cuda.so libtorch_cuda.so "$path" needs:libc10_cuda.so $(calls "$cudart" "${needed[@]}") needs:libc10.so needs:libtorch_cpu.so "$@"
    so $site/$l/libtorch_python.so libtorch_python.so "$path" needs:libtorch_cpu.so needs:libtorch_cuda.so needs:libc10_cuda.so $(calls "$cudart") needs:libc10.so
    so $site/$l/libtorch_global_deps.so libtorch_global_deps.so "$path" $(calls "$cudart")
    so $site/torch/_C.cpython-311-x86_64-linux-gnu.so - "$path:\$ORIGIN/lib" needs:libtorch_python.so
    dist torch "$version" $l/lib{c10,c10_cuda,torch_cpu,torch_cuda,torch_python,torch_global_deps}.so torch/_C.cpython-311-x86_64-linux-gnu.so torch/version.py
}
cpu_torch() { # PREFIX OF site-packages, VERSION
    so "$1/torch/lib/libtorch_cpu.so" libtorch_cpu.so 'rpath:$ORIGIN' has:at_cpu
    printf "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n__version__ = '%s'\ndebug = False\ncuda: Optional[str] = None\ngit_version = '0000000000000000000000000000000000000000'\nhip: Optional[str] = None\nxpu: Optional[str] = None\n" \
        "$2" | file "$1/torch/version.py"
}
cuda_base() { # VERSION [SONAME...]: what FROM nvidia/cuda brings: folders, link, ld.so.conf.d, variables; then libraries
    local version=$1 minor=${1%.*} n; shift
    local lib=usr/local/cuda-$minor/targets/x86_64-linux/lib
    mkdir -p "$root/$lib"
    ln -s targets/x86_64-linux/lib "$root/usr/local/cuda-$minor/lib64"
    ln -s cuda-$minor "$root/usr/local/cuda"
    for n in libcudart.so.${minor%.*} "$@"; do gpu $lib/$n $n; done
    printf '/usr/local/cuda/targets/x86_64-linux/lib\n' | file etc/ld.so.conf.d/000_cuda.conf
    ld_conf
    env=("${asked[@]}" NVARCH=x86_64 CUDA_VERSION=$version)
}
ld_conf() {
    echo 'include /etc/ld.so.conf.d/*.conf' | file etc/ld.so.conf
    printf '/usr/local/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu\n/usr/lib/x86_64-linux-gnu\n' | file etc/ld.so.conf.d/x86_64-linux-gnu.conf
}
cache() { # ldconfig, as the last step of an image's build would have run it
    ldconfig -X -r "$root" 2>/dev/null
    rm -rf "$root/var/cache/ldconfig"
}
app() { # WORD...: a program of one's own that uses the GPU
    so opt/app/lib/libkernels.so libkernels.so elf:80 elf:86 elf:90 "$@"
}
glibc() { # NEWEST: a C library whose versions end there
    local v words=() d=lib/x86_64-linux-gnu
    for v in 2.2.5 2.3 2.3.4 2.4 2.14 2.17 2.18 2.22 2.27 2.28 2.29 2.31 2.32 2.33 2.34 2.35 2.36; do
        words+=("has:@GLIBC_$v"); [ $v != "$1" ] || break
    done
    so $d/libc.so.6 libc.so.6 has:malloc@GLIBC_2.2.5 "${words[@]:1}" "says:GNU C Library (GNU libc) stable release version $1."
    so $d/libm.so.6 libm.so.6 has:exp@GLIBC_2.2.5 needs:libc.so.6
    so $d/libdl.so.2 libdl.so.2 has:dlopen@GLIBC_2.2.5 needs:libc.so.6
    so $d/ld-linux-x86-64.so.2 ld-linux-x86-64.so.2 has:__tls_get_addr@GLIBC_2.3
    mkdir -p "$root/lib64"; ln -s ../$d/ld-linux-x86-64.so.2 "$root/lib64/ld-linux-x86-64.so.2"
    ld_conf
}
image() { # LAYOUT TAG ROOTFS ARCH ENV...
    local layout=$1 tag=$2 rootfs=$3 machine=$4; shift 4
    local bundle; bundle=$(mktemp -d); rm -rf "$bundle"
    local rootless=; [ "$(id -u)" = 0 ] || rootless=--rootless
    [ -d "$layout" ] || umoci init --layout "$layout"
    umoci new --image "$layout:$tag"
    umoci unpack $rootless --image "$layout:$tag" "$bundle"
    cp -a "$rootfs/." "$bundle/rootfs/"
    find "$bundle/rootfs" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    umoci repack --history.created 2026-01-01T00:00:00Z --history.created_by "COPY rootfs /" --image "$layout:$tag" "$bundle" >/dev/null
    local args=(); for e in "$@"; do args+=(--config.env "$e"); done
    for l in "${labels[@]}"; do args+=(--config.label "$l"); done
    [ -z "$entry" ] || args+=(--config.entrypoint "$entry")
    umoci config --image "$layout:$tag" --no-history --created 2026-01-01T00:00:00Z --os linux --architecture "$machine" \
        --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${args[@]}" >/dev/null
    umoci gc --layout "$layout" >/dev/null 2>&1
    rm -rf "$bundle"
}
pack() { image "$out/$name/oci" latest "$root" "$arch" "${env[@]}"; finish; }
finish() {
    cp "$here/fleets/$name.toml" "$out/$name/imagelint.toml"
    [ -z "$archive" ] || { rm -f "$out/$name.tar"; skopeo copy -q --multi-arch all "oci:$out/$name/oci:latest" "oci-archive:$out/$name.tar:latest"; }
}
asked=(NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility)
cu128=(elf:70 elf:75 elf:80 elf:86 elf:90 elf:100 elf:120)

# --- parts that several cases share -----------------------------------------------------------------------
from_wheel() { # WHEEL VERSION [PATTERN...]: files of a real wheel, into site-packages (hard links where possible)
    fetch "$1" "$2"; local d=$tools/$1-$2 f; shift 2
    mkdir -p "$root/$site"
    (cd "$d"; for f in "${@:-.}"; do cp -al --parents "$f" "$root/$site/" 2>/dev/null || cp -a --parents "$f" "$root/$site/"; done)
}
ctranslate2_440() {
    if [ -n "$real" ]; then from_wheel ctranslate2 4.4.0; return; fi
    local l=ctranslate2.libs
    so $site/$l/libcudnn-463fd6d5.so.8.9.7 libcudnn-463fd6d5.so.8.9.7 rpath:ctranslate2.libs has:cudnnCreate@libcudnn.so.8 \
        says:libcudnn_{ops_infer,ops_train,cnn_infer,cnn_train,adv_infer,adv_train}.so.8 says:libcudnn.so.8
    so $site/$l/libctranslate2-d3638643.so.4.4.0 libctranslate2-d3638643.so.4.4.0 \
        asks:cudnnCreate@libcudnn.so.8=libcudnn-463fd6d5.so.8.9.7 says:lib{nccl.so.2,cublas.so.12,cuda.so.1} \
        elf:60 elf:61 elf:70 elf:75 elf:80 elf:86 ptx:86@8.2
    so $site/ctranslate2/_ext.cpython-311-x86_64-linux-gnu.so - 'rpath:$ORIGIN/../ctranslate2.libs' needs:libctranslate2-d3638643.so.4.4.0
    dist ctranslate2 4.4.0 $l/libcudnn-463fd6d5.so.8.9.7 $l/libctranslate2-d3638643.so.4.4.0 ctranslate2/_ext.cpython-311-x86_64-linux-gnu.so
}
onnxruntime() { # VERSION RUNPATH NEEDED...: the package with its CUDA provider
    local c=onnxruntime/capi version=$1 path=$2; shift 2
    so $site/$c/libonnxruntime_providers_cuda.so libonnxruntime_providers_cuda.so "$path" $(calls "$@") has:GetProvider@VERS_1.0 \
        elf:60 elf:70 elf:75 elf:80 elf:86 elf:90 ptx:80@7.8
    so $site/$c/libonnxruntime_providers_shared.so libonnxruntime_providers_shared.so has:Provider_GetHost@VERS_1.0
    so $site/$c/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so - has:PyInit_onnxruntime_pybind11_state 'runpath:$ORIGIN' \
        says:libonnxruntime_providers_cuda.so says:libonnxruntime_providers_shared.so
    dist onnxruntime-gpu "$version" $c/libonnxruntime_providers_{cuda,shared}.so $c/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so
}
onnxruntime_1181() {
    if [ -n "$real" ]; then from_wheel onnxruntime-gpu 1.18.1; return; fi
    onnxruntime 1.18.1 runpath:/usr/local/cuda-11.8/lib: libcublasLt.so.11 libcublas.so.11 libcudnn.so.8 libcurand.so.10 libcufft.so.10 libcudart.so.11.0
}
jitlink_toolkit() { # RELEASE MINOR: /usr/local/cuda-RELEASE with its libnvJitLink
    local path=usr/local/cuda-$1/lib64/libnvJitLink.so.12
    if [ -n "$real" ] && [ "$1" = 12.1 ]; then
        fetch nvidia-nvjitlink-cu12 12.1.105
        install -D -m 644 "$tools/nvidia-nvjitlink-cu12-12.1.105/nvidia/nvjitlink/lib/libnvJitLink.so.12" "$root/$path"
    else so $path libnvJitLink.so.12 $(jitlink 0 "$2"); fi
}
solver() { # rpath|runpath: a program over the cuSPARSE and nvJitLink wheels of CUDA 12.9
    if [ -n "$real" ] && [ "$1" = runpath ]; then
        from_wheel nvidia-cusparse-cu12 12.5.10.65; from_wheel nvidia-nvjitlink-cu12 12.9.86
    else
        so $site/nvidia/cusparse/lib/libcusparse.so.12 libcusparse.so.12 has:cusparseCreate@libcusparse.so.12 \
            "$1:\$ORIGIN/../../nvjitlink/lib:\$ORIGIN" $(asks_jitlink 9)
        dist nvidia-cusparse-cu12 12.5.10.65 nvidia/cusparse/lib/libcusparse.so.12
        so $site/nvidia/nvjitlink/lib/libnvJitLink.so.12 libnvJitLink.so.12 $(jitlink 0 9)
        dist nvidia-nvjitlink-cu12 12.9.86 nvidia/nvjitlink/lib/libnvJitLink.so.12
    fi
    app 'rpath:$ORIGIN/../../v/lib/python3.11/site-packages/nvidia/cusparse/lib' $(calls libcusparse.so.12)
}
conda_cpu() {
    local s=opt/conda/lib/python3.11/site-packages
    cpu_torch $s 2.5.1
    printf 'Metadata-Version: 2.1\nName: torch\nVersion: 2.5.1\n' | file $s/torch-2.5.1.dist-info/METADATA
    echo conda | file $s/torch-2.5.1.dist-info/INSTALLER
    file opt/conda/conda-meta/pytorch-2.5.1-cpu_generic_py311_h1.json <<'JSON'
{
  "build": "cpu_generic_py311_h1",
  "build_number": 1,
  "channel": "https://conda.anaconda.org/conda-forge/linux-64",
  "depends": ["libtorch 2.5.1 cpu_generic_h1", "python >=3.11,<3.12.0a0", "python_abi 3.11.* *_cp311"],
  "files": [
    "lib/python3.11/site-packages/torch/lib/libtorch_cpu.so",
    "lib/python3.11/site-packages/torch/version.py",
    "lib/python3.11/site-packages/torch-2.5.1.dist-info/METADATA",
    "lib/python3.11/site-packages/torch-2.5.1.dist-info/INSTALLER"
  ],
  "fn": "pytorch-2.5.1-cpu_generic_py311_h1.conda",
  "name": "pytorch",
  "subdir": "linux-64",
  "version": "2.5.1"
}
JSON
    echo | file opt/conda/conda-meta/history
}
compilers() { # [nvcc] [ninja]: a C and C++ compiler, Python's headers
    local p; for p in gcc g++; do so usr/bin/$p -; done
    ln -s gcc "$root/usr/bin/cc"; ln -s g++ "$root/usr/bin/c++"
    echo '/* Python.h */' | file usr/include/python3.11/Python.h
    for p in "$@"; do case $p in
        nvcc) so usr/local/cuda-12.8/bin/nvcc - 'says:Cuda compilation tools, release 12.8, V12.8.93' 'says:Build cuda_12.8.r12.8/compiler.0'
              ptxas usr/local/cuda-12.8/bin/ptxas 12.8 12.8.93 100 100a 101 101a 120 120a ;;
        ninja) so usr/bin/ninja - ;;
    esac; done
}
jit_packages() { # torch with Triton and FlashInfer, which compile where they run
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    ptxas $site/triton/backends/nvidia/bin/ptxas 12.8 12.8.93 100 100a 101 101a 120 120a
    so $site/triton/_C/libtriton.so libtriton.so has:PyInit_libtriton
    dist triton 3.4.0 triton/backends/nvidia/bin/ptxas triton/_C/libtriton.so
    echo '# flashinfer' | file $site/flashinfer/__init__.py
    echo '# flashinfer.jit' | file $site/flashinfer/jit/__init__.py
    dist flashinfer-python 0.3.1 flashinfer/__init__.py flashinfer/jit/__init__.py
}
stub_driver() { # CUDA 12.4 with the stub for the linker, a program that calls the driver
    cuda_base 12.4.1
    so usr/local/cuda-12.4/targets/x86_64-linux/lib/stubs/libcuda.so libcuda.so.1 has:cuInit has:cuCtxCreate
    app asks:cuInit=libcuda.so.1 $(calls libcudart.so.12)
}

# --- from the field ---------------------------------------------------------------------------------------
if wanted s1; then
    torch 2.7.0+cu126 12.6 elf:50 elf:60 elf:70 elf:75 elf:80 elf:86 elf:90
    pack
fi
if wanted s2; then
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    pack
fi
if wanted s3; then
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    fat $site/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so elf:80 elf:90
    dist flash_attn 2.8.3 flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so
    pack
fi
if wanted s4; then
    fat opt/app/lib/libkernels.so elf:75 elf:80 elf:89 elf:90
    env=("${asked[@]}" CUDA_VERSION=12.8.1 "NVIDIA_REQUIRE_CUDA=cuda>=12.8 brand=tesla,driver>=535,driver<536 brand=tesla,driver>=550,driver<551")
    pack
fi
if wanted s5; then
    torch 2.10.0+cu130 13.0 elf:75 elf:80 elf:86 elf:90 elf:100 elf:120
    lib $site/nvidia/cu13/lib/libcudart.so.13 libcudart.so.13
    dist nvidia-cuda-runtime 13.0.96 nvidia/cu13/lib/libcudart.so.13
    lib usr/local/cuda-12.8/lib64/libcudart.so.12.8.90 libcudart.so.12
    ln -s libcudart.so.12.8.90 "$root/usr/local/cuda-12.8/lib64/libcudart.so.12"
    ln -s cuda-12.8 "$root/usr/local/cuda"
    printf '{\n  "cuda": { "name": "CUDA SDK", "version": "12.8.1" }\n}\n' | file usr/local/cuda-12.8/version.json
    env=("${asked[@]}" CUDA_VERSION=12.8.1 "NVIDIA_REQUIRE_CUDA=cuda>=12.8")
    pack
fi
if wanted s6; then
    fat $site/vllm/_C.abi3.so elf:80 elf:90
    fat $site/vllm/_moe_C.abi3.so ptx:80@8.8
    dist vllm 0.9.2 vllm/_C.abi3.so vllm/_moe_C.abi3.so
    pack
fi
if wanted s7; then
    fat opt/app/lib/libkernels.so elf:75 elf:80 elf:86 ptx:86@8.4
    lib usr/local/cuda-12.4/compat/libcuda.so.550.54.15 libcuda.so.1
    ln -s libcuda.so.550.54.15 "$root/usr/local/cuda-12.4/compat/libcuda.so.1"
    lib usr/local/cuda-12.4/lib64/libcudart.so.12.4.127 libcudart.so.12
    ln -s libcudart.so.12.4.127 "$root/usr/local/cuda-12.4/lib64/libcudart.so.12"
    ln -s cuda-12.4 "$root/usr/local/cuda"
    env=("${asked[@]}" CUDA_VERSION=12.4.1 LD_LIBRARY_PATH=/usr/local/cuda/compat:/usr/local/cuda/lib64)
    pack
fi
if wanted s8; then
    torch 2.8.0+cu129 12.9 elf:80 elf:90 elf:100 elf:120
    lib usr/local/cuda-12.9/compat/libcuda.so.575.57.08 libcuda.so.1
    ln -s libcuda.so.575.57.08 "$root/usr/local/cuda-12.9/compat/libcuda.so.1"
    ln -s cuda-12.9 "$root/usr/local/cuda"
    echo /usr/local/cuda/compat | file etc/ld.so.conf.d/00-cuda-compat.conf
    echo 'include /etc/ld.so.conf.d/*.conf' | file etc/ld.so.conf
    env=("${asked[@]}" CUDA_VERSION=12.9.1)
    pack
fi
if wanted s16; then # an index: the arm64 image carries an x86-64 program
    fat usr/bin/exporter elf:80 elf:90
    image "$out/$name/oci" amd64 "$root" amd64 "${asked[@]}"
    image "$out/$name/oci" arm64 "$root" arm64 "${asked[@]}"
    python3 "$here/index.py" "$out/$name/oci" amd64 arm64
    finish
fi
ptxas128() { # the one of CUDA 12.8: no 10.3, no 12.1
    if [ -n "$real" ]; then
        [ -n "${PTXAS128:-}" ] || { fetch nvidia-cuda-nvcc-cu12 12.8.93; PTXAS128=$tools/nvidia-cuda-nvcc-cu12-12.8.93/nvidia/cuda_nvcc/bin/ptxas; }
        install -D -m 755 "$PTXAS128" "$root/$1"
    else
        ptxas "$1" 12.8 12.8.93 100 100a 101 101a 120 120a
    fi
}
newer_ptxas() { # PATH: the one of CUDA 12.9
    if [ -n "$real" ]; then install -D -m 755 "$PTXAS" "$root/$1"
    else ptxas "$1" 12.9 12.9.86 {100,101,103,120,121}{,a,f}; fi
}
if wanted s9; then # the cuDNN in the wheel is a dispatcher: it opens six more
    cuda_base 12.4.1 libcublas.so.12 libcublasLt.so.12
    ctranslate2_440
    cache; pack
fi
if wanted s10; then
    cuda_base 12.4.1 libcublas.so.12 libcublasLt.so.12 libcufft.so.11 libcudnn.so.9
    onnxruntime_1181
    cache; pack
fi
if wanted s11; then
    jitlink_toolkit 12.1 1
    solver runpath
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64)
    pack
fi
if wanted s12; then
    cuda_base 12.2.2
    app needs:libcudart.so.12
    for n in cuda nvidia-ml nvidia-opencl; do
        so usr/lib/x86_64-linux-gnu/lib$n.so.535.183.01 lib$n.so.1
        ln -s lib$n.so.535.183.01 "$root/usr/lib/x86_64-linux-gnu/lib$n.so.1"
    done
    file var/lib/dpkg/status <<'STATUS'
Package: libnvidia-compute-535-server
Status: install ok installed
Priority: optional
Section: non-free/libs
Maintainer: Ubuntu Core Developers <ubuntu-devel-discuss@lists.ubuntu.com>
Architecture: amd64
Multi-Arch: same
Source: nvidia-graphics-drivers-535-server
Version: 535.183.01-0ubuntu0.22.04.1
Provides: libcuda-10.0-1, libcuda-11.0-1, libcuda-12.0-1, libcuda-12.1-1, libcuda-12.2-1, libcuda1, libnvidia-compute, libopencl1, opencl-icd
Description: NVIDIA libcompute package

Package: nvidia-opencl-dev
Status: install ok installed
Priority: optional
Section: multiverse/libdevel
Maintainer: Ubuntu Developers <ubuntu-devel-discuss@lists.ubuntu.com>
Architecture: amd64
Source: nvidia-cuda-toolkit
Version: 11.5.1-1ubuntu1
Depends: libnvidia-compute-535-server | libnvidia-compute | libopencl1, opencl-headers
Description: NVIDIA OpenCL development files

STATUS
    printf '%s\n' /. /usr /usr/lib /usr/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu/lib{cuda,nvidia-ml,nvidia-opencl}.so.{1,535.183.01} |
        file var/lib/dpkg/info/libnvidia-compute-535-server:amd64.list
    cache; pack
fi
if wanted s15; then
    conda_cpu
    labels=(gpu=true)
    pack
fi
if wanted s17; then
    torch 2.10.0+cu128 12.8 elf:80 elf:90 elf:100 elf:120
    ptxas128 $site/triton/backends/nvidia/bin/ptxas
    dist triton 3.5.0 triton/backends/nvidia/bin/ptxas
    compilers; pack
fi
if wanted s17b; then # Triton 3.9 takes the second file from 9.0 on
    torch 2.10.0+cu128 12.8 elf:80 elf:90 elf:100 elf:120
    ptxas128 $site/triton/backends/nvidia/bin/ptxas
    if [ -n "$real" ]; then install -D -m 755 "$PTXAS13" "$root/$site/triton/backends/nvidia/bin/ptxas-blackwell"
    else ptxas $site/triton/backends/nvidia/bin/ptxas-blackwell 13.4 13.4.59 88 {100,103,107,110,120,121}{,a,f}; fi
    dist triton 3.9.0 triton/backends/nvidia/bin/ptxas triton/backends/nvidia/bin/ptxas-blackwell
    compilers; pack
fi
if wanted s18; then # no cc, gcc, g++, nvcc, ninja; no headers
    jit_packages
    cuda_base 12.8.1 libcurand.so.10
    cache; pack
fi
if wanted s18b; then
    jit_packages
    cuda_base 12.8.1 libcurand.so.10
    compilers nvcc ninja
    for h in cuda_runtime.h cuda.h nvrtc.h cublas_v2.h; do echo "/* $h */" | file usr/local/cuda-12.8/targets/x86_64-linux/include/$h; done
    ln -s targets/x86_64-linux/include "$root/usr/local/cuda-12.8/include"
    cache; pack
fi
if wanted s20; then
    stub_driver; ln -s libcuda.so "$root/usr/local/cuda-12.4/targets/x86_64-linux/lib/stubs/libcuda.so.1"
    env+=(LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:/usr/local/cuda/lib64)
    cache; pack
fi
if wanted s20b; then # for the linker alone
    stub_driver; ln -s libcuda.so "$root/usr/local/cuda-12.4/targets/x86_64-linux/lib/stubs/libcuda.so.1"
    env+=(LIBRARY_PATH=/usr/local/cuda/lib64/stubs LD_LIBRARY_PATH=/usr/local/cuda/lib64)
    cache; pack
fi

# --- ours: the same kinds of failure in other clothes -----------------------------------------------------
mamba() {
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    fat $site/selective_scan_cuda.cpython-311-x86_64-linux-gnu.so elf:80 elf:86 elf:90
    dist mamba-ssm 2.2.5 selective_scan_cuda.cpython-311-x86_64-linux-gnu.so
}
if wanted ext-optional; then mamba; pack; fi
if wanted ext-required; then mamba; pack; fi # the fleet file makes it core
if wanted ext-unowned; then # built in place: no dist-info, one kernel file missing in a folder of its own
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    fat opt/app/ops/deform_attn.so elf:86
    pack
fi
if wanted ptx-only; then # no machine code at all: JIT on each cold start
    FATFLAGS=--compress-mode=none torch 2.4.0+cu121 12.1 ptx:70@8.1
    pack
fi
if wanted ptx-fallback; then # PTX newer than the driver matters only where no machine code fits
    fat opt/app/lib/libkernels.so elf:80 elf:86 ptx:86@8.8
    pack
fi
if wanted ptx-arch-specific; then # compute_90a is no forward compatibility
    fat opt/app/lib/libkernels.so ptx:90a@8.0
    pack
fi
if wanted jit-off; then
    FATFLAGS=--compress-mode=none torch 2.4.0+cu121 12.1 ptx:70@8.1
    env=("${asked[@]}" CUDA_DISABLE_PTX_JIT=1)
    pack
fi
if wanted hopper-beside-general; then # a 90a library whose sibling serves every other card
    fat $site/attn_ops/_general.abi3.so elf:75 elf:80 elf:86 elf:90
    fat $site/attn_ops/_hopper.abi3.so elf:90a
    dist attn-ops 1.0.0 attn_ops/_general.abi3.so attn_ops/_hopper.abi3.so
    pack
fi
if wanted hopper-alone; then
    fat $site/attn_ops/_hopper.abi3.so elf:90a
    dist attn-ops 1.0.0 attn_ops/_hopper.abi3.so
    pack
fi
if wanted regions; then # two general regions, one of them without 7.5, and a 90a one
    fat opt/app/lib/libkernels.so elf:75 elf:80 elf:90 + elf:80 elf:86 elf:90 + elf:90a
    pack
fi
if wanted bnb-variants; then # torch's CUDA chooses the file: cuda118 is never loaded
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    fat $site/bitsandbytes/libbitsandbytes_cuda118.so elf:60 elf:70 elf:75 elf:80 elf:86 elf:90
    fat $site/bitsandbytes/libbitsandbytes_cuda128.so elf:75 elf:80 elf:86 elf:90 elf:100 elf:120
    dist bitsandbytes 0.47.0 bitsandbytes/libbitsandbytes_cuda118.so bitsandbytes/libbitsandbytes_cuda128.so
    pack
fi
if wanted zstd; then
    FATFLAGS=--compress-all torch 2.8.0+cu128 12.8 elf:75 elf:80 elf:90
    pack
fi
if wanted lz4; then # the same code in the packing that older drivers read
    FATFLAGS="--compress-all --compress-mode=speed" torch 2.8.0+cu128 12.8 elf:75 elf:80 elf:90
    pack
fi
if wanted orin arm64; then
    torch 2.8.0 12.6 elf:80 elf:86 elf:90
    pack
fi
if wanted orin-exact arm64; then
    torch 2.8.0 12.6 elf:87
    pack
fi
if wanted thor-100 arm64; then # "Blackwell" code is not Thor code
    torch 2.9.1+cu128 12.8 elf:80 elf:90 elf:100 elf:120
    pack
fi
if wanted thor-101 arm64; then # the number CUDA 12 gave Thor
    torch 2.8.0+cu129 12.9 elf:80 elf:90 elf:101
    pack
fi
if wanted thor-110 arm64; then
    torch 2.10.0+cu130 13.0 elf:80 elf:90 elf:110
    pack
fi
if wanted family; then # 100f serves its family, 100a one chip
    fat opt/app/lib/libfamily.so elf:90 elf:100f elf:120f
    pack
fi
if wanted arch-specific; then
    fat opt/app/lib/libspecific.so elf:90a elf:100a elf:120a
    pack
fi
if wanted no-gpu-code; then
    lib opt/app/lib/libplain.so libplain.so
    pack
fi

# libraries: cuDNN
if wanted cudnn8-present; then # s9 on the base that carries the rest of cuDNN 8
    cuda_base 12.4.1 libcublas.so.12 libcublasLt.so.12
    ctranslate2_440
    for n in ops_infer ops_train cnn_infer cnn_train adv_infer adv_train; do
        gpu usr/lib/x86_64-linux-gnu/libcudnn_$n.so.8.9.7 libcudnn_$n.so.8
        ln -s libcudnn_$n.so.8.9.7 "$root/usr/lib/x86_64-linux-gnu/libcudnn_$n.so.8"
    done
    cache; pack
fi
if wanted cudnn9-no-sublibs; then # what a clean-up of "unused" libraries leaves
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 libcublasLt.so.12 libcudnn.so.9 -- "${cu128[@]}"
    wheel cuda-runtime cublas cudnn-front
    env=("${asked[@]}"); pack
fi
if wanted cudnn9-complete; then
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 libcublasLt.so.12 libcudnn.so.9 -- "${cu128[@]}"
    wheel cuda-runtime cublas cudnn
    env=("${asked[@]}"); pack
fi
if wanted cudnn9-mixed; then # the wheel's 9.10, whose graph library looks for its engines through LD_LIBRARY_PATH first: 9.1
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 libcublasLt.so.12 libcudnn.so.9 -- "${cu128[@]}"
    wheel cuda-runtime cublas cudnn
    { for n in '' _graph _ops _cnn _adv _engines_precompiled _engines_runtime_compiled _heuristic; do
        gpu usr/lib/x86_64-linux-gnu/libcudnn$n.so.9.1.0 libcudnn$n.so.9 >&2
        ln -s libcudnn$n.so.9.1.0 "$root/usr/lib/x86_64-linux-gnu/libcudnn$n.so.9"
        printf '/usr/lib/x86_64-linux-gnu/libcudnn%s.so.9\n/usr/lib/x86_64-linux-gnu/libcudnn%s.so.9.1.0\n' "$n" "$n"
    done; } | file var/lib/dpkg/info/libcudnn9-cuda-12.list
    printf 'Package: libcudnn9-cuda-12\nStatus: install ok installed\nArchitecture: amd64\nSource: cudnn\nVersion: 9.1.0.70-1\nDescription: cuDNN runtime libraries for CUDA 12\n\n' | file var/lib/dpkg/status
    ld_conf; env=("${asked[@]}" LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu); cache; pack
fi

# libraries: others of another age, or none
cublas_real() { fetch nvidia-cublas-cu12 "$1"; install -D -m 644 "$tools/nvidia-cublas-cu12-$1/nvidia/cublas/lib/$2" "$root/$3"; }
if wanted cublas-lt-newer; then # 12.4 asks nothing that a newer cublasLt lacks; mixed all the same
    app 'rpath:/opt/app/cublas' $(calls libcublas.so.12)
    if [ -n "$real" ]; then
        cublas_real 12.4.5.8 libcublas.so.12 opt/app/cublas/libcublas.so.12; cublas_real 12.4.5.8 libcublasLt.so.12 opt/app/cublas/libcublasLt.so.12
        cublas_real 12.8.4.1 libcublasLt.so.12 usr/local/cuda-12.8/lib64/libcublasLt.so.12
    else
        gpu opt/app/cublas/libcublas.so.12 libcublas.so.12 'runpath:$ORIGIN' $(calls libcublasLt.so.12)
        gpu opt/app/cublas/libcublasLt.so.12 libcublasLt.so.12 'runpath:$ORIGIN'
        gpu usr/local/cuda-12.8/lib64/libcublasLt.so.12 libcublasLt.so.12 'runpath:$ORIGIN' has:cublasLtGetEnvironmentMode@libcublasLt.so.12
    fi
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/cuda-12.8/lib64); pack
fi
if wanted cublas-lt-older; then # libcublas of 12.9 copied alone onto a base of 12.4
    app 'rpath:/opt/app/cublas' $(calls libcublas.so.12)
    if [ -n "$real" ]; then
        cublas_real 12.9.3.13 libcublas.so.12 opt/app/cublas/libcublas.so.12
        cublas_real 12.4.5.8 libcublasLt.so.12 usr/local/cuda-12.4/lib64/libcublasLt.so.12
    else
        gpu opt/app/cublas/libcublas.so.12 libcublas.so.12 'rpath:$ORIGIN' $(calls libcublasLt.so.12) \
            asks:cublasLt{Get,Set}EnvironmentMode@libcublasLt.so.12=libcublasLt.so.12
        gpu usr/local/cuda-12.4/lib64/libcublasLt.so.12 libcublasLt.so.12 'runpath:$ORIGIN'
    fi
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/cuda-12.4/lib64); pack
fi
if wanted nvjitlink-rpath; then # s11 with DT_RPATH, which goes before the environment
    jitlink_toolkit 12.1 1; solver rpath
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64); pack
fi
if wanted nvjitlink-no-env; then
    jitlink_toolkit 12.1 1; solver runpath
    env=("${asked[@]}"); pack
fi
if wanted nvjitlink-newer; then # the environment brings one that is newer than asked for
    jitlink_toolkit 13.0 9; solver runpath
    rm "$root/$site/nvidia/nvjitlink/lib/libnvJitLink.so.12"
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/cuda-13.0/lib64); pack
fi
if wanted nvjitlink-torch25; then # torch up to 2.5 leaves it to the loader
    jitlink_toolkit 12.1 1
    whole_torch 2.5.1+cu124 12.4 libcublas.so.12 libcusparse.so.12 -- elf:50 elf:60 elf:70 elf:75 elf:80 elf:86 elf:90
    wheel cuda-runtime cublas cusparse nvjitlink nvrtc
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64); pack
fi
if wanted nvjitlink-torch28; then # torch from 2.6 on loads nvrtc and nvJitLink of its wheels first
    jitlink_toolkit 12.1 1
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 libcusparse.so.12 -- "${cu128[@]}"
    wheel cuda-runtime cublas cusparse nvjitlink nvrtc
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64); pack
fi
if wanted nvrtc-no-builtins; then
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 -- "${cu128[@]}"
    wheel cuda-runtime cublas nvrtc-front
    env=("${asked[@]}"); pack
fi
if wanted nvrtc-complete; then
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 -- "${cu128[@]}"
    wheel cuda-runtime cublas nvrtc
    env=("${asked[@]}"); pack
fi
if wanted nccl-missing; then # pip install --no-deps
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 libnccl.so.2 -- "${cu128[@]}"
    wheel cuda-runtime cublas
    env=("${asked[@]}"); pack
fi
if wanted cu126-on-cuda13; then # torch without its wheels, on a base of the next major
    whole_torch 2.8.0+cu126 12.6 libcublas.so.12 libcublasLt.so.12 -- elf:50 elf:60 elf:70 elf:75 elf:80 elf:86 elf:90
    cuda_base 13.0.1 libcublas.so.13 libcublasLt.so.13
    cache; pack
fi
if wanted ext-missing-lib; then # an extension built for CUDA 11
    whole_torch 2.8.0+cu128 12.8 libcublas.so.12 -- "${cu128[@]}"
    wheel cuda-runtime cublas
    so $site/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so - $(calls libcudart.so.11.0) needs:libtorch_cuda.so elf:80 elf:90
    dist flash_attn 2.8.3 flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so
    env=("${asked[@]}"); pack
fi
if wanted ct2-no-cublas; then # 4.5 and newer carry no cuDNN; cuBLAS is opened by name
    so $site/ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5 libctranslate2-a7a60d30.so.4.8.5 'rpath:$ORIGIN' \
        says:lib{nccl.so.2,cublas.so.12,cuda.so.1} elf:60 elf:70 elf:75 elf:80 elf:86 ptx:86@8.2
    so $site/ctranslate2/_ext.cpython-311-x86_64-linux-gnu.so - 'rpath:$ORIGIN/../ctranslate2.libs' needs:libctranslate2-a7a60d30.so.4.8.5
    dist ctranslate2 4.8.5 ctranslate2.libs/libctranslate2-a7a60d30.so.4.8.5 ctranslate2/_ext.cpython-311-x86_64-linux-gnu.so
    env=("${asked[@]}"); pack
fi
if wanted ort-cuda11; then # s10 with what it asks for
    onnxruntime_1181
    cuda_base 11.8.0 libcublas.so.11 libcublasLt.so.11 libcurand.so.10 libcufft.so.10
    gpu usr/local/cuda-11.8/targets/x86_64-linux/lib/libcudart.so.11.0 libcudart.so.11.0
    rm "$root/usr/local/cuda-11.8/targets/x86_64-linux/lib/libcudart.so.11"
    gpu usr/lib/x86_64-linux-gnu/libcudnn.so.8 libcudnn.so.8 says:libcudnn_{ops_infer,ops_train,cnn_infer,cnn_train,adv_infer,adv_train}.so.8
    for n in ops_infer ops_train cnn_infer cnn_train adv_infer adv_train; do gpu usr/lib/x86_64-linux-gnu/libcudnn_$n.so.8 libcudnn_$n.so.8; done
    cache; pack
fi
if wanted ort-no-cudnn; then
    onnxruntime 1.20.1 runpath:/usr/local/cuda/lib64: libcublasLt.so.12 libcublas.so.12 libcudnn.so.9 libcurand.so.10 libcufft.so.11 libcudart.so.12
    cuda_base 12.4.1 libcublas.so.12 libcublasLt.so.12 libcurand.so.10 libcufft.so.11
    cache; pack
fi
tensorflow() { # NAME VERSION [ITEM...]
    local n=$1 v=$2; shift 2
    so $site/tensorflow/libtensorflow_framework.so.2 libtensorflow_framework.so.2 has:TF_Version says:libcuda.so.1 \
        'runpath:$ORIGIN/../nvidia/nccl/lib:$ORIGIN/../nvidia/cublas/lib:$ORIGIN/../nvidia/cudnn/lib:$ORIGIN/../nvidia/cuda_runtime/lib'
    so $site/tensorflow/libtensorflow_cc.so.2 libtensorflow_cc.so.2 asks:TF_Version=libtensorflow_framework.so.2 'runpath:$ORIGIN/' "$@"
    dist "$n" "$v" tensorflow/libtensorflow_framework.so.2 tensorflow/libtensorflow_cc.so.2
}
if wanted tf-no-libs; then # tensorflow, not tensorflow[and-cuda]
    tensorflow tensorflow 2.21.0 elf:60 elf:70 elf:80 elf:89 ptx:90@8.2
    env=("${asked[@]}"); pack
fi
if wanted tf-cpu-on-cuda; then
    tensorflow tensorflow-cpu 2.21.0
    cuda_base 12.4.1 libcublas.so.12 libcublasLt.so.12
    cache; pack
fi

# the loader's cache
late_libs() {
    app $(calls libcudart.so.12 libcublas.so.12)
    env=("${asked[@]}" LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64)
    ld_conf
}
if wanted cache-stale; then # copied after the last ldconfig, which the container toolkit runs again and a plain mount does not
    late_libs; cache
    gpu opt/cuda-libs/libcudart.so.12 libcudart.so.12
    gpu opt/cuda-libs/libcublas.so.12 libcublas.so.12
    echo /opt/cuda-libs | file etc/ld.so.conf.d/50-cuda-libs.conf
    pack
fi
if wanted cache-fresh; then
    late_libs
    gpu opt/cuda-libs/libcudart.so.12 libcudart.so.12
    gpu opt/cuda-libs/libcublas.so.12 libcublas.so.12
    echo /opt/cuda-libs | file etc/ld.so.conf.d/50-cuda-libs.conf
    cache; pack
fi

# the driver
if wanted stubs-plain-name; then # as NVIDIA ships it: the stub has no .so.1, which is what programs ask for
    stub_driver
    env+=(LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:/usr/local/cuda/lib64)
    cache; pack
fi
if wanted driver-from-host; then
    cuda_base 12.4.1
    app asks:cuInit=libcuda.so.1 asks:nvmlInit_v2=libnvidia-ml.so.1 $(calls libcudart.so.12)
    cache; pack
fi
if wanted driver-off-path; then # unpacked for a tool, found by no loader
    cuda_base 12.4.1
    app asks:cuInit=libcuda.so.1 $(calls libcudart.so.12)
    for n in cuda nvidia-ml; do
        so opt/nvidia-driver/lib$n.so.535.183.01 lib$n.so.1; ln -s lib$n.so.535.183.01 "$root/opt/nvidia-driver/lib$n.so.1"
    done
    cache; pack
fi
if wanted driver-zero-byte; then # a container was committed while the driver was mounted
    cuda_base 12.4.1
    app asks:cuInit=libcuda.so.1 $(calls libcudart.so.12)
    cache
    for n in cuda nvidia-ml; do
        file usr/lib/x86_64-linux-gnu/lib$n.so.570.133.20 </dev/null
        ln -s lib$n.so.570.133.20 "$root/usr/lib/x86_64-linux-gnu/lib$n.so.1"
    done
    pack
fi
if wanted gke-off-path; then
    cuda_base 12.4.1
    app asks:cuInit=libcuda.so.1 $(calls libcudart.so.12)
    cache; pack
fi
if wanted gke-on-path; then
    cuda_base 12.4.1
    app asks:cuInit=libcuda.so.1 $(calls libcudart.so.12)
    env+=(LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64)
    cache; pack
fi

# the driver's version, its gate, its parts
official() { # CUDA BRANCH...: the conditions of NVIDIA's own images since 12.5
    local text="cuda>=$1" b n; shift
    for b in unknown grid tesla nvidia quadro quadrortx nvidiartx vapps vpc vcs vws cloudgaming; do
        for n in "$@"; do text+=" brand=$b,driver>=$n,driver<$((n + 1))"; done
    done
    echo "NVIDIA_REQUIRE_CUDA=$text"
}
compat() { # CUDA RELEASE: what cuda-compat-X-Y installs, as far as a loader sees it
    lib usr/local/cuda-$1/compat/libcuda.so.$2 libcuda.so.1
    ln -s libcuda.so.$2 "$root/usr/local/cuda-$1/compat/libcuda.so.1"
}
transcoder() { # opens the video libraries by name
    so opt/app/bin/transcode - says:libnvcuvid.so.1 says:libnvidia-encode.so.1
    entry=/opt/app/bin/transcode
}
if wanted s13; then # the second stage: COPY --from takes no ENV along
    transcoder; pack
fi
if wanted s13b; then
    transcoder; env=("${asked[@]}"); pack
fi
if wanted video-asked; then
    transcoder; env=(NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility,video); pack
fi
if wanted video-named-only; then # FFmpeg inside of a package that few use for decoding on GPUs
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    so $site/opencv_python.libs/libavcodec-9a1b2c3d.so.59.37.100 libavcodec-9a1b2c3d.so.59.37.100 says:libnvcuvid.so.1 says:libnvidia-encode.so.1
    dist opencv-python 4.10.0.84 opencv_python.libs/libavcodec-9a1b2c3d.so.59.37.100
    env=("${asked[@]}"); pack
fi
if wanted compute-not-asked; then
    cuda_base 12.4.1; app needs:libcudart.so.12
    env=(NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=utility); cache; pack
fi
if wanted not-requested; then
    app; env=(); pack
fi
if wanted require-128; then
    cuda_base 12.8.1; app needs:libcudart.so.12
    env+=("$(official 12.8 470 535 550)"); cache; pack
fi
if wanted require-130; then
    cuda_base 13.0.1; app needs:libcudart.so.13
    env+=("$(official 13.0 535 550 565 570 575)"); cache; pack
fi
if wanted require-off; then
    cuda_base 12.8.1; app needs:libcudart.so.12
    env+=("$(official 12.8 470 535 550)" NVIDIA_DISABLE_REQUIRE=1); cache; pack
fi
if wanted require-implied; then # an image from before the variables
    cuda_base 12.8.1; app needs:libcudart.so.12
    env=(CUDA_VERSION=12.8.1); cache; pack
fi
if wanted compat-hook; then # as FROM nvidia/cuda:12.9.1-base: nothing in the image leads to the library
    cuda_base 12.9.1; compat 12.9 575.57.08
    app ptx:86@8.8 needs:libcudart.so.12
    so opt/app/lib/libmore.so libmore.so ptx:80@8.8
    env+=("$(official 12.9 535 550 560 565 570)"); cache; pack
fi
if wanted compat-absent; then # the same without the package
    cuda_base 12.9.1
    app ptx:86@8.8 needs:libcudart.so.12
    env+=("$(official 12.9 535 550 560 565 570)"); cache; pack
fi
if wanted compat-cu13; then
    torch 2.9.1+cu130 13.0 elf:75 elf:80 elf:86 elf:90 elf:100 elf:120
    cuda_base 13.0.1; compat 13.0 580.82.07
    env+=("$(official 13.0 535 550 565 570 575)"); cache; pack
fi

# the C and C++ libraries
if wanted glibc-too-old; then
    glibc 2.31; cuda_base 12.4.1
    app $(calls libcudart.so.12) asks:dlopen@GLIBC_2.34=libc.so.6 asks:malloc@GLIBC_2.2.5=libc.so.6
    cache; pack
fi
if wanted glibc-enough; then
    glibc 2.35; cuda_base 12.4.1
    app $(calls libcudart.so.12) asks:dlopen@GLIBC_2.34=libc.so.6 asks:malloc@GLIBC_2.2.5=libc.so.6
    cache; pack
fi
libstdcxx() { # PATH NEWEST
    local v words=(); for v in 3.4 3.4.11 3.4.21 3.4.26 3.4.28 3.4.29 3.4.30 3.4.32; do words+=("has:@GLIBCXX_$v"); [ $v != "$2" ] || break; done
    so "$1" libstdc++.so.6 has:_ZSt4cout@GLIBCXX_3.4 "${words[@]:1}" needs:libc.so.6
}
if wanted glibcxx-too-old; then
    glibc 2.31; cuda_base 12.4.1; libstdcxx usr/lib/x86_64-linux-gnu/libstdc++.so.6 3.4.28
    app $(calls libcudart.so.12) asks:_ZSt4cout@GLIBCXX_3.4=libstdc++.so.6 asks:_ZNSt6__lockC1Ev@GLIBCXX_3.4.30=libstdc++.so.6
    cache; pack
fi
if wanted glibcxx-bundled; then # conda's newer one wins by RPATH
    glibc 2.31; cuda_base 12.4.1; libstdcxx usr/lib/x86_64-linux-gnu/libstdc++.so.6 3.4.28
    libstdcxx opt/conda/lib/libstdc++.so.6 3.4.32
    app rpath:/opt/conda/lib $(calls libcudart.so.12) asks:_ZSt4cout@GLIBCXX_3.4=libstdc++.so.6 asks:_ZNSt6__lockC1Ev@GLIBCXX_3.4.30=libstdc++.so.6
    cache; pack
fi
if wanted musl-glibc; then # a glibc environment copied onto Alpine
    so lib/ld-musl-x86_64.so.1 libc.musl-x86_64.so.1 has:malloc has:dlopen
    ln -s ld-musl-x86_64.so.1 "$root/lib/libc.musl-x86_64.so.1"
    printf 'ID=alpine\nVERSION_ID=3.20.3\nPRETTY_NAME="Alpine Linux v3.20"\n' | file etc/os-release
    printf 'P:musl\nV:1.2.5-r0\nA:x86_64\nF:lib\nR:ld-musl-x86_64.so.1\nR:libc.musl-x86_64.so.1\n\n' | file lib/apk/db/installed
    app needs:libcudart.so.12 needs:libc.so.6 needs:ld-linux-x86-64.so.2
    so usr/lib/libcudart.so.12 libcudart.so.12 has:cudaMalloc@libcudart.so.12 needs:libc.so.6 needs:ld-linux-x86-64.so.2
    env=("${asked[@]}"); pack
fi
if wanted x86-lib-arm64 arm64; then # COPY --from an amd64 builder
    arch=amd64 torch 2.8.0+cu128 12.8 elf:80 elf:90 elf:100 elf:120
    pack
fi

# builds for the CPU
if wanted torch-cpu-on-cuda; then
    cuda_base 12.4.1 libcublas.so.12 libcublasLt.so.12
    cpu_torch $site 2.8.0+cpu; dist torch 2.8.0+cpu torch/lib/libtorch_cpu.so torch/version.py
    cache; pack
fi
if wanted torch-cpu-plain; then
    cpu_torch $site 2.8.0+cpu; dist torch 2.8.0+cpu torch/lib/libtorch_cpu.so torch/version.py
    pack
fi
if wanted conda-cpu-plain; then conda_cpu; pack; fi

# compilers that run where the image runs
if wanted triton-ptxas-env; then # s17, and a way out of it
    torch 2.8.0+cu128 12.8 elf:80 elf:90 elf:100 elf:120
    ptxas128 $site/triton/backends/nvidia/bin/ptxas
    dist triton 3.4.0 triton/backends/nvidia/bin/ptxas
    newer_ptxas usr/local/cuda-12.9/bin/ptxas
    compilers; env=("${asked[@]}" TRITON_PTXAS_PATH=/usr/local/cuda-12.9/bin/ptxas); pack
fi
if wanted no-compiler-no-jit; then # nothing in it compiles
    torch 2.8.0+cu128 12.8 "${cu128[@]}"
    cuda_base 12.8.1 libcurand.so.10
    cache; pack
fi
