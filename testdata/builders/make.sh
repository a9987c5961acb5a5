#!/bin/bash
# make.sh OUT   builds one small image with every builder and in every layout again; README.md says what there is.
# Needs root, buildah, podman, skopeo, umoci, zstd, python3. Nothing in the image is run, so no network and no daemon.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"; out=$(cd "$1" && pwd)
work=$(mktemp -d)
export SOURCE_DATE_EPOCH=1767225600
store=(--storage-driver vfs --root "$work/storage" --runroot "$work/run")
trap 'umount -q "$work/storage/vfs" 2>/dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT
buildah() { command buildah "${store[@]}" "$@"; }
podman() { command podman "${store[@]}" "$@"; }
stored="containers-storage:[vfs@$work/storage+$work/run]"
site=opt/venv/lib/python3.11/site-packages

# What the first layer adds: a package with device code, a symlink, a hard link, and a leftover of a build.
one() { # ROOT
    local corpus=$here/../corpus/cuda/bin info=$1/$site/demo_kernels-1.2.0.dist-info
    mkdir -p "$1/$site/demo_kernels" "$info" "$1/opt/build" "$1/etc"
    printf 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n' >"$1/etc/os-release"
    cp "$corpus/cu124_wrapped.so" "$1/$site/demo_kernels/libkernels.so.1"
    ln -s libkernels.so.1 "$1/$site/demo_kernels/libkernels.so"
    ln "$1/$site/demo_kernels/libkernels.so.1" "$1/$site/demo_kernels/libsame.so"
    printf '__version__ = "1.2.0"\n' >"$1/$site/demo_kernels/__init__.py"
    printf 'Metadata-Version: 2.1\nName: demo-kernels\nVersion: 1.2.0\n' >"$info/METADATA"
    printf 'Wheel-Version: 1.0\nGenerator: make.sh\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n' >"$info/WHEEL"
    (cd "$1/$site" && for f in demo_kernels/* demo_kernels-1.2.0.dist-info/*; do echo "$f,,"; done
     echo demo_kernels-1.2.0.dist-info/RECORD,,) >"$work/RECORD"
    cp "$work/RECORD" "$info/RECORD"
    cp "$corpus/odd_ptx_in_rodata.so" "$1/opt/build/leftover.so"
    chmod -R u=rwX,go=rX "$1"
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}
# What the second changes: the leftover goes, a file comes.
two() { # ROOT
    rm -r "$1/opt/build"
    mkdir -p "$1/srv"
    printf 'ready\n' >"$1/srv/motd"
    chmod u=rwX,go=rX "$1/srv" "$1/srv/motd"
    touch -d "@$SOURCE_DATE_EPOCH" "$1/srv/motd" "$1/srv" "$1/opt" "$1"
}

# The root file system, as a folder and as a tar.
one "$work/rootfs"; two "$work/rootfs"
rm -rf "$out/rootfs"; cp -a "$work/rootfs" "$out/rootfs"
tar -C "$work/rootfs" --sort=name --owner=0 --group=0 --numeric-owner -cf "$out/rootfs.tar" .
tar -C "$work/rootfs" --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/rootfs.tar.gz" .

# buildah: two layers, in both formats of manifest.
container=$(buildah from scratch)
one "$(buildah mount "$container")"
buildah config --env NVIDIA_VISIBLE_DEVICES=all --env NVIDIA_DRIVER_CAPABILITIES=compute,utility --cmd /serve \
    --os linux --arch amd64 "$container"
buildah umount "$container" >/dev/null
buildah commit -q --timestamp $SOURCE_DATE_EPOCH --format oci "$container" demo:one >/dev/null
for format in oci docker; do
    container=$(buildah from localhost/demo:one)
    two "$(buildah mount "$container")"
    buildah umount "$container" >/dev/null
    buildah commit -q --timestamp $SOURCE_DATE_EPOCH --format $format "$container" demo:$format >/dev/null
    rm -rf "$out/buildah-$format.oci" "$out/buildah-$format.dir"
done
buildah push -q localhost/demo:oci "oci:$out/buildah-oci.oci:latest"
buildah push -q localhost/demo:docker "dir:$out/buildah-docker.dir"

# podman save, its four formats, and two images in one archive.
rm -rf "$out"/podman-*
podman save -q --format docker-archive -o "$out/podman-docker-archive.tar" localhost/demo:docker
podman save -q --format oci-archive -o "$out/podman-oci-archive.tar" localhost/demo:oci
podman save -q --format oci-dir -o "$out/podman-oci-dir" localhost/demo:oci
podman save -q --format docker-dir -o "$out/podman-docker-dir" localhost/demo:docker
podman save -q -m -o "$out/podman-two-images.tar" localhost/demo:one localhost/demo:docker

# skopeo: every compression, and archives.
rm -rf "$out"/skopeo-*
for kind in gzip zstd zstd:chunked; do
    skopeo copy -q --dest-compress-format $kind "${stored}localhost/demo:oci" "oci:$out/skopeo-${kind/:/-}.oci:latest"
done
skopeo copy -q --dest-oci-accept-uncompressed-layers "${stored}localhost/demo:oci" "oci:$out/skopeo-plain.oci:latest"
skopeo copy -q "${stored}localhost/demo:oci" "oci-archive:$out/skopeo-oci-archive.tar:latest"
skopeo copy -q "${stored}localhost/demo:docker" "docker-archive:$out/skopeo-docker-archive.tar:demo:docker"
skopeo copy -q "${stored}localhost/demo:docker" "dir:$out/skopeo-docker.dir"
skopeo copy -q --dest-compress "${stored}localhost/demo:oci" "dir:$out/skopeo-oci-gzip.dir"

# umoci.
rm -rf "$out/umoci.oci"
umoci init --layout "$out/umoci.oci"
umoci new --image "$out/umoci.oci:latest"
umoci unpack --image "$out/umoci.oci:latest" "$work/bundle" >/dev/null
one "$work/bundle/rootfs"
umoci repack --refresh-bundle --history.created 2026-01-01T00:00:00Z --image "$out/umoci.oci:latest" "$work/bundle" >/dev/null
two "$work/bundle/rootfs"
umoci repack --refresh-bundle --history.created 2026-01-01T00:00:00Z --image "$out/umoci.oci:latest" "$work/bundle" >/dev/null
umoci config --image "$out/umoci.oci:latest" --no-history --created 2026-01-01T00:00:00Z --os linux --architecture amd64 \
    --config.env NVIDIA_VISIBLE_DEVICES=all --config.env NVIDIA_DRIVER_CAPABILITIES=compute,utility --config.cmd /serve
umoci gc --layout "$out/umoci.oci" >/dev/null 2>&1

# What needs a daemon or a cluster to make: the same layers in the layouts of docker save and Kaniko. And a wheel.
python3 "$here/make_saves.py" "$out/skopeo-plain.oci" "$out"
python3 "$here/make_wheel.py" "$work/rootfs/$site" "$out/demo_kernels-1.2.0-cp311-cp311-linux_x86_64.whl"
du -sh --apparent-size "$out"
