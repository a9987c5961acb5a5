#!/bin/bash
# keep.sh IMAGELINT OUT   after make.sh OUT: keeps the cases and the real loaders' answers for testdata/tests/loader.rs.
# Needs root (chroot), musl, zstd.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# The answers are the real loaders', whether imagelint gives the same or not.
python3 "$here/check.py" "$1" "$2" --write "$here/expect.json" | tail -1 || true
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$2" -cf - oci | zstd -19 -q -f -o "$here/cases.tar.zst"
