#!/bin/sh
# Makes the squashfs images of this folder anew, one a codec. Needs mksquashfs 4.5 or later; no root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/etc" "$tree/usr/lib/deep/er" "$tree/empty"
printf 'PATH="/usr/bin:/bin"\nLD_LIBRARY_PATH=/usr/lib\n' >"$tree/etc/environment"
# Two whole blocks and an end that lies in a fragment.
seq 1 2000 >"$tree/usr/lib/numbers"
head -c 20480 /dev/zero >"$tree/usr/lib/zeros"
printf 'x' >"$tree/usr/lib/deep/er/x"
: >"$tree/usr/lib/nothing"
ln -s ../lib/numbers "$tree/usr/lib/link"
ln "$tree/usr/lib/numbers" "$tree/usr/lib/deep/same"
i=0
while [ $i -lt 40 ]; do
    printf '%s' "$i" >"$tree/usr/lib/deep/file-$i"
    i=$((i + 1))
done
for codec in gzip lzo xz lz4 zstd; do
    rm -f "$here/$codec.sqsh"
    mksquashfs "$tree" "$here/$codec.sqsh" -comp "$codec" -b 4096 -nopad -all-root -all-time 0 -mkfs-time 0 \
        -no-xattrs -p 'usr/lib/pipe i 644 0 0 f' -p 'usr/null c 666 0 0 1 3' -quiet -no-progress
done
# As enroot makes them by default: data not packed at all.
rm -f "$here/enroot.sqsh"
mksquashfs "$tree" "$here/enroot.sqsh" -comp lzo -noD -b 4096 -nopad -all-root -all-time 0 -mkfs-time 0 \
    -no-xattrs -p 'usr/lib/pipe i 644 0 0 f' -p 'usr/null c 666 0 0 1 3' -quiet -no-progress
