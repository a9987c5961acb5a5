#!/bin/bash
# make.sh OUT [CASE...]   builds the field cases as real images, daemon-less and without a GPU.
#
# Per case: OUT/CASE/rootfs, OUT/CASE/oci (an OCI layout, tag latest, packed by umoci), OUT/CASE/imagelint.toml.
# What imagelint must say about each stands in expect.tsv; check.py compares.
# Needs gcc, umoci, skopeo, python3. PTXAS, PTXAS13 and FATBINARY name the compilers; where they are unset, pip fetches
# NVIDIA's wheels into TOOLS (default OUT/tools).  --archive as first argument also writes OUT/CASE.tar (oci-archive).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
archive=; [ "${1:-}" != --archive ] || { archive=1; shift; }
mkdir -p "$1"; out=$(cd "$1" && pwd); shift
only=" $* "

tools=${TOOLS:-$out/tools}
if [ -z "${PTXAS:-}" ] || [ -z "${PTXAS13:-}" ] || [ -z "${FATBINARY:-}" ]; then
    fetch() { # WHEEL VERSION
        [ -d "$tools/$1-$2" ] || {
            pip download -q --no-deps --only-binary=:all: --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
                -d "$tools/wheels" "$1==$2"
            python3 -m zipfile -e "$tools/wheels/${1//-/_}-$2"-*.whl "$tools/$1-$2"
            chmod -R +x "$tools/$1-$2"
        }
    }
    fetch nvidia-cuda-nvcc-cu12 12.9.86
    fetch nvidia-cuda-nvcc 13.5.37
    PTXAS=${PTXAS:-$tools/nvidia-cuda-nvcc-cu12-12.9.86/nvidia/cuda_nvcc/bin/ptxas}
    PTXAS13=${PTXAS13:-$tools/nvidia-cuda-nvcc-13.5.37/nvidia/cu13/bin/ptxas}
    FATBINARY=${FATBINARY:-$tools/nvidia-cuda-nvcc-13.5.37/nvidia/cu13/bin/fatbinary}
fi
export PTXAS PTXAS13 FATBINARY
export SOURCE_DATE_EPOCH=1767225600

site=opt/v/lib/python3.11/site-packages
name=; root=; arch=; env=()

# --- words of a recipe ------------------------------------------------------------------------------------
wanted() { # CASE [ARCH]: starts a case, or says no when others were asked for
    [ "$only" = "  " ] || [[ $only = *" $1 "* ]] || return 1
    name=$1; arch=${2:-amd64}; env=(); root=$out/$1/rootfs
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
if wanted s17; then
    torch 2.10.0+cu128 12.8 elf:80 elf:90 elf:100 elf:120
    old=${PTXAS128:-}
    if [ -z "$old" ]; then
        pip download -q --no-deps --only-binary=:all: --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 -d "$tools/wheels" nvidia-cuda-nvcc-cu12==12.8.93
        python3 -m zipfile -e "$tools"/wheels/nvidia_cuda_nvcc_cu12-12.8.93-*.whl "$tools/nvidia-cuda-nvcc-cu12-12.8.93"
        old=$tools/nvidia-cuda-nvcc-cu12-12.8.93/nvidia/cuda_nvcc/bin/ptxas
    fi
    install -D -m 755 "$old" "$root/$site/triton/backends/nvidia/bin/ptxas"
    dist triton 3.5.0 triton/backends/nvidia/bin/ptxas
    pack
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
