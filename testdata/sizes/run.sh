#!/bin/bash
# run.sh [WORKDIR]   the lane of sizes and differences: real wheels against two other readings of their bytes.
#
# Downloads the wheels below from PyPI into WORKDIR (default: a temporary folder, removed at the end; about 8 GB).
# IMAGELINT: the program to judge (default: cargo build --release).
# Ends with "equal" twice, or exit 1.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ $# -gt 0 ]; then mkdir -p "$1"; work=$(cd "$1" && pwd); else work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; fi

if [ -z "${IMAGELINT:-}" ]; then
    cargo build --release --quiet --manifest-path "$root/Cargo.toml"
    IMAGELINT=${CARGO_TARGET_DIR:-$root/target}/release/imagelint
fi

fetch() { # NAME==VERSION: prints the wheel
    local name=${1%%==*} version=${1##*==}
    local stem=${name//-/_}-$version
    if ! compgen -G "$work/wheels/$stem-*.whl" >/dev/null; then
        local platforms=()
        for p in manylinux_2_{35,34,31,28,27,24,17}_x86_64 manylinux{2014,2010,1}_x86_64 any; do platforms+=(--platform "$p"); done
        pip download -q --disable-pip-version-check --no-deps --only-binary=:all: "${platforms[@]}" \
            --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none -d "$work/wheels" "$1" >&2
    fi
    compgen -G "$work/wheels/$stem-*.whl" | head -n 1
}

cuobjdump=$work/cuobjdump/nvidia/cu13/bin/cuobjdump
[ -e "$cuobjdump" ] || python3 -m zipfile -e "$(fetch nvidia-cuda-cuobjdump==13.5.37)" "$work/cuobjdump"
chmod +x "$cuobjdump"

# One tree as pip would make it, RECORDs and all.
tree=$work/tree/opt/venv/lib/python3.11/site-packages
if [ ! -e "$work/tree/.done" ]; then
    for wheel in torch==2.8.0 nvidia-cublas-cu12==12.8.4.1 nvidia-cusparse-cu12==12.5.8.93; do
        python3 -m zipfile -e "$(fetch "$wheel")" "$tree"
    done
    touch "$work/tree/.done"
fi
python3 "$here/check.py" "$IMAGELINT" sizes "$work/tree"
python3 "$here/check.py" "$IMAGELINT" diff "$(fetch torch==2.7.1)" "$(fetch torch==2.8.0)" "$cuobjdump"
