#!/bin/bash
# make.sh OUT.tar   builds the sample image (an OCI archive) again.
# Needs gcc, umoci, skopeo, python3, and PTXAS, PTXAS13, FATBINARY as ../cases/make.sh explains.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath -m "$1")
: "${PTXAS:?ptxas 12.9}" "${PTXAS13:?ptxas 13.x}" "${FATBINARY:?fatbinary 13.x}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=1767225600
layout=$work/oci root=$work/bundle/rootfs
site=opt/venv/lib/python3.11/site-packages
rootless=; [ "$(id -u)" = 0 ] || rootless=--rootless

umoci init --layout "$layout"
umoci new --image "$layout:latest"
umoci unpack $rootless --image "$layout:latest" "$work/bundle"

file() { mkdir -p "$root/$(dirname "$1")"; cat >"$root/$1"; }
dist() { # NAME VERSION FILE...
    local info=${1//-/_}-$2.dist-info n=$1 v=$2; shift 2
    printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' "$n" "$v" | file "$site/$info/METADATA"
    printf 'pip\n' | file "$site/$info/INSTALLER"
    { for f in "$@" "$info/METADATA" "$info/INSTALLER" "$info/RECORD"; do echo "$f,,"; done; } | file "$site/$info/RECORD"
}
layer() { # WHAT
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    umoci repack --refresh-bundle --history.created 2026-01-01T00:00:00Z --history.created_by "$1" --image "$layout:latest" "$work/bundle" >/dev/null
}

# 1: a base, with a kernel test that a later layer removes
file etc/os-release <<'T'
PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
ID=debian
T
file var/lib/dpkg/status <<'T'
Package: base-files
Status: install ok installed
Architecture: amd64
Version: 12.4+deb12u12

T
mkdir -p "$root/usr/lib" "$root/opt/build"
ln -s usr/lib "$root/lib"
"$here/../cases/mkfat.sh" "$root/opt/build/libselftest.so" elf:50 elf:60
layer 'COPY base /'

# 2: torch and the CUDA runtime it is linked with
runtime=$root/$site/nvidia/cuda_runtime/lib
mkdir -p "$runtime" "$root/$site/torch/lib"
echo 'int cudart_placeholder;' | gcc -shared -nostdlib -s -Wl,--build-id=none -Wl,-z,max-page-size=4096 -Wl,-soname,libcudart.so.12 -x c - -o "$runtime/libcudart.so.12"
dist nvidia-cuda-runtime-cu12 12.6.77 nvidia/cuda_runtime/lib/libcudart.so.12
LDX="-Wl,--no-as-needed -L$runtime -l:libcudart.so.12 -Wl,-rpath,\$ORIGIN/../../nvidia/cuda_runtime/lib" SONAME=libtorch_cuda.so \
    "$here/../cases/mkfat.sh" "$root/$site/torch/lib/libtorch_cuda.so" elf:50 elf:60 elf:70 elf:75 elf:80 elf:86 elf:90 + elf:50 elf:60 elf:70 elf:75 elf:80 elf:86 elf:90 + elf:90a
file $site/torch/version.py <<'T'
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.7.1+cu126'
debug = False
cuda: Optional[str] = '12.6'
git_version = '0000000000000000000000000000000000000000'
hip: Optional[str] = None
T
dist torch 2.7.1+cu126 torch/lib/libtorch_cuda.so torch/version.py
layer 'RUN pip install torch==2.7.1+cu126'

# 3: an extension built in place; the leftover goes
"$here/../cases/mkfat.sh" "$root/$site/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so" elf:80 elf:90
dist flash_attn 2.8.3 flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so
rm -r "$root/opt/build"
layer 'RUN pip install flash-attn==2.8.3 && rm -r /opt/build'

umoci config --image "$layout:latest" --no-history --created 2026-01-01T00:00:00Z --os linux --architecture amd64 \
    --config.env PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --config.env NVIDIA_VISIBLE_DEVICES=all --config.env NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    --config.env 'NVIDIA_REQUIRE_CUDA=cuda>=12.0' --config.cmd python3 --config.cmd serve.py
umoci gc --layout "$layout" >/dev/null 2>&1
rm -f "$out"
skopeo copy -q "oci:$layout:latest" "oci-archive:$out:latest"
