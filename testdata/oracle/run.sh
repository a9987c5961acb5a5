#!/bin/bash
# run.sh [WORKDIR]   the oracle lane: imagelint against NVIDIA's cuobjdump on real libraries.
#
# Downloads the wheels below and two versions of cuobjdump from PyPI into WORKDIR (default: a temporary folder, removed at the end;
# about 12 GB), lists the device code of every library with both programs and accounts for each difference by name.
# IMAGELINT: the program to judge (default: cargo build --release).  WHEELS: other wheels, "name==version …".
# Ends with "0 unexplained differences", or exit 1.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ $# -gt 0 ]; then mkdir -p "$1"; work=$(cd "$1" && pwd); else work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; fi

if [ -z "${IMAGELINT:-}" ]; then
    cargo build --release --quiet --manifest-path "$root/Cargo.toml"
    IMAGELINT=${CARGO_TARGET_DIR:-$root/target}/release/imagelint
fi

fetch() { # NAME==VERSION: prints the folder of the unpacked wheel
    local name=${1%%==*} version=${1##*==} wheel
    local stem=${name//-/_}-$version
    if ! compgen -G "$work/wheels/$stem-*.whl" >/dev/null; then
        local platforms=()
        for p in manylinux_2_{35,34,31,28,27,24,17}_x86_64 manylinux{2014,2010,1}_x86_64 any; do platforms+=(--platform "$p"); done
        pip download -q --disable-pip-version-check --no-deps --only-binary=:all: "${platforms[@]}" \
            --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none -d "$work/wheels" "$1" >&2
    fi
    if [ ! -e "$work/unpacked/$stem/.done" ]; then
        wheel=$(compgen -G "$work/wheels/$stem-*.whl" | head -n 1)
        python3 -m zipfile -e "$wheel" "$work/unpacked/$stem"
        touch "$work/unpacked/$stem/.done"
    fi
    echo "$work/unpacked/$stem"
}

new=$(fetch nvidia-cuda-cuobjdump==13.5.37)/nvidia/cu13/bin/cuobjdump
old=$(fetch triton==3.0.0)/triton/backends/nvidia/bin/cuobjdump # the one inside is 12.4
chmod +x "$new" "$old"

folders=()
for wheel in ${WHEELS:-torch==2.6.0 torch==2.15.0 nvidia-cublas-cu12==12.9.3.13 nvidia-cusparse-cu12==12.5.10.65 onnxruntime-gpu==1.31.1 \
    bitsandbytes==0.50.2 faiss-gpu-cu12==1.14.1.post1 ctranslate2==4.8.5}; do
    folders+=("$(fetch "$wheel")")
done
python3 "$here/compare.py" "$IMAGELINT" "$new" "$old" "${folders[@]}"
