#!/bin/bash
# make.sh OUT   builds the 78 layer cases: OUT/handmade/CASE, a few archives, OUT/expect.json.
# Needs gcc, objcopy (binutils), GNU tar, zstd, python3; no network, no root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"; out=$(cd "$1" && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
# A small ELF with empty device-code sections: what the cases ask is whether it is found, not what is in it.
{ printf '\x50\xed\x55\xba\x01\x00\x10\x00'; head -c 4096 /dev/zero; } >"$work/empty.fatbin"
echo 'int answer(void) { return 1; }' >"$work/gpu.c"
gcc -shared -fPIC -o "$work/plain.so" "$work/gpu.c"
objcopy --add-section .nv_fatbin="$work/empty.fatbin" --add-section .hip_fatbin="$work/empty.fatbin" "$work/plain.so" "$work/gpu.so"
python3 "$here/mk_layers.py" "$out" "$work/gpu.so"
rm -rf "$out/tmp"
