#!/bin/bash
# layer.sh OUT   the layers for the speed and memory figures, from real CUDA wheels.
#
#   OUT/layer.tar, .tar.gz, .tar.zst   one layer: nvidia-cublas-cu12 unpacked in site-packages, packed by GNU tar, gzip -6 (one member)
#                                      and zstd -3
#   OUT/gz, OUT/zst                    an OCI layout (tag latest) of that one layer
#   OUT/tenfold                        an OCI layout of ten layers, each another copy of the files with other bytes in it: an image
#                                      ten times as large, for the memory figure
# WHEELS chooses other wheels ("name==version …"). Needs pip, tar, gzip, zstd, python3; about 10 GB of disk, ten minutes of one core.
# TENFOLD=no leaves out the large image.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"; out=$(cd "$1" && pwd)
site=opt/venv/lib/python3.11/site-packages

if [ ! -e "$out/layer.tar" ]; then
    rm -rf "$out/rootfs"; mkdir -p "$out/rootfs/$site"
    for wheel in ${WHEELS:-nvidia-cublas-cu12==12.9.3.13}; do
        name=${wheel%%==*}; stem=${name//-/_}-${wheel##*==}
        compgen -G "$out/wheels/$stem-*.whl" >/dev/null ||
            pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux_2_28_x86_64 \
                --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 --python-version 3.11 -d "$out/wheels" "$wheel"
        python3 -m zipfile -e "$(compgen -G "$out/wheels/$stem-*.whl" | head -n 1)" "$out/rootfs/$site"
    done
    tar --sort=name --mtime=@1767225600 --owner=0 --group=0 --numeric-owner -C "$out/rootfs" -cf "$out/layer.tar.part" .
    mv "$out/layer.tar.part" "$out/layer.tar"
fi
[ -e "$out/layer.tar.gz" ] || { gzip -6 -n -c "$out/layer.tar" >"$out/part"; mv "$out/part" "$out/layer.tar.gz"; }
[ -e "$out/layer.tar.zst" ] || { zstd -q -3 -c "$out/layer.tar" >"$out/part"; mv "$out/part" "$out/layer.tar.zst"; }
python3 "$here/layout.py" "$out/gz" gzip "$out/layer.tar" "$out/layer.tar.gz"
python3 "$here/layout.py" "$out/zst" zstd "$out/layer.tar" "$out/layer.tar.zst"

if [ "${TENFOLD:-yes}" = yes ] && [ ! -e "$out/tenfold/index.json" ]; then
    layers=()
    for i in 0 1 2 3 4 5 6 7 8 9; do
        # the same libraries under another folder: other paths, another digest
        if [ ! -e "$out/copy$i.tar.gz" ]; then
            tar --sort=name --mtime=@1767225600 --owner=0 --group=0 --numeric-owner -C "$out/rootfs" \
                --transform "s,^\./opt/venv,./opt/venv$i,;s,^\.\$,./," -cf "$out/copy$i.tar" .
            gzip -1 -n -c "$out/copy$i.tar" >"$out/part"; mv "$out/part" "$out/copy$i.tar.gz"
            sha256sum "$out/copy$i.tar" | cut -d' ' -f1 >"$out/copy$i.diff_id"
            rm "$out/copy$i.tar"
        fi
        layers+=("$out/copy$i.diff_id" "$out/copy$i.tar.gz")
    done
    python3 "$here/layout.py" "$out/tenfold" gzip "${layers[@]}"
fi
ls -l "$out"/layer.tar*
