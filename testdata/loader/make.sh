#!/bin/bash
# make.sh OUT   builds the loader cases: OUT/CASE/root (a tree), OUT/CASE/env, and OUT/oci (an image per case, by tag).
# Needs gcc, ldconfig, python3; no root, no network. check.py asks the real loaders, and needs root for chroot.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
python3 "$here/mk_cases.py" "$(cd "$1" && pwd)"
