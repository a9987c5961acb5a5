#!/bin/bash
# bench.sh OUT   builds the layers if they are not there, the program, and prints the figures.
# CUOBJDUMP=PROGRAM LIBRARY=FILE adds `inspect` against NVIDIA's own listing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:?usage: bench.sh OUT}
[ -e "$out/zst/index.json" ] && { [ "${TENFOLD:-yes}" != yes ] || [ -e "$out/tenfold/index.json" ]; } || "$here/layer.sh" "$out"
cargo build --locked --release --manifest-path "$root/Cargo.toml" --bin imagelint --example inflate
bin=$(cargo metadata --format-version 1 --no-deps --manifest-path "$root/Cargo.toml" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/release
more=()
[ "${TENFOLD:-yes}" != yes ] || more+=(--tenfold "$out/tenfold")
[ -z "${CUOBJDUMP:-}" ] || more+=(--inspect "$LIBRARY" "$CUOBJDUMP")
echo "gzip -6, one member:"
python3 "$here/run.py" "$bin/imagelint" "$bin/examples/inflate" "$out/gz" --pairs "${PAIRS:-7}" "${more[@]}"
echo "zstd -3:"
python3 "$here/run.py" "$bin/imagelint" "$bin/examples/inflate" "$out/zst" --pairs "${PAIRS:-7}"
