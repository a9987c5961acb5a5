#!/bin/bash
# run.sh WORK [IMAGELINT]   real rebuilds: a base with gcc and nvcc is made, extensions are compiled in it for too few
# GPUs, and `imagelint rebuild` is to mend, build and judge them. README.md says what there is and what it needs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"; work=$(cd "$1" && pwd)
lint=$(realpath "${2:-$here/../../target/debug/imagelint}")
cuda=${CUDA:-13}
unset "${!DOCKER_@}" || true

# Storage of its own. RUN needs no namespaces with chroot isolation.
driver=${STORAGE_DRIVER:-overlay}; unset STORAGE_DRIVER
cat >"$work/storage.conf" <<CONF
[storage]
driver = "$driver"
graphroot = "$work/storage"
runroot = "$work/run"
CONF
export CONTAINERS_STORAGE_CONF=$work/storage.conf BUILDAH_ISOLATION=chroot
export TMPDIR=$work/tmp; mkdir -p "$TMPDIR"
lane=localhost/imagelint-lane

# A container that the work is done in, and its root.
opened() { container=$(buildah from "$1"); root=$(buildah mount "$container"); }
closed() { # NAME
    buildah umount "$container" >/dev/null
    buildah commit -q --disable-compression "$container" "$1" >/dev/null
    buildah rm "$container" >/dev/null
}

# Debian with g++, CMake and Python; nvcc from the wheels of PyPI, in the places of a toolkit.
base() {
    mkdir -p "$work/wheels"
    (cd "$work/wheels" && pip download -q --no-deps "nvidia-cuda-nvcc==$cuda.*" "nvidia-cuda-crt==$cuda.*" \
        "nvidia-nvvm==$cuda.*" "nvidia-cuda-runtime==$cuda.*" "nvidia-cuda-cccl==$cuda.*")
    opened scratch
    debootstrap --variant=minbase --include=g++,make,cmake,python3-minimal bookworm "$root" >"$work/debootstrap.log"
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
    for wheel in "$work"/wheels/*.whl; do unzip -qo "$wheel" "nvidia/cu$cuda/*" -d "$work/unpacked"; done
    mkdir -p "$root/usr/local/cuda"
    cp -a "$work/unpacked/nvidia/cu$cuda/." "$root/usr/local/cuda/"
    rm -rf "$work/unpacked" "$root"/usr/local/cuda/lib/libnvvm.so*
    ln -s lib "$root/usr/local/cuda/lib64"
    ln -s "libcudart.so.$cuda" "$root/usr/local/cuda/lib/libcudart.so"
    chmod -R a+rX "$root/usr/local/cuda"
    chmod a+x "$root"/usr/local/cuda/bin/* "$root"/usr/local/cuda/nvvm/bin/*
    local libraries; libraries=$(mktemp -d)
    for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libstdc++.so.6 libgcc_s.so.1; do
        cp -L "$root/lib/x86_64-linux-gnu/$name" "$libraries"
    done
    cp -L "$root/lib64/ld-linux-x86-64.so.2" "$root/etc/os-release" "$libraries"
    buildah config --env PATH=/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    closed $lane/devel:13
    # What the extensions run in: the C and C++ libraries, no more.
    opened scratch
    mkdir -p "$root/etc" "$root/lib64" "$root/usr/lib/x86_64-linux-gnu"
    mv "$libraries/ld-linux-x86-64.so.2" "$root/lib64/"
    mv "$libraries/os-release" "$root/etc/"
    mv "$libraries"/* "$root/usr/lib/x86_64-linux-gnu/"
    rmdir "$libraries"
    closed $lane/run:13
}
buildah inspect --type image $lane/run:13 >/dev/null 2>&1 || base

failed=0
check() { # WHAT EXPECTED GOT
    if [ "$2" = "$3" ]; then echo "ok    $1"; else echo "FAIL  $1: $3, not $2"; failed=$((failed + 1)); fi
}
# A case's files, fresh.
fresh() { # CASE
    rm -rf "$work/cases/$1" "$work/cases/$1.before"; mkdir -p "$work/cases"
    cp -r "$here/cases/$1" "$work/cases/$1"
    cp "$here/cases/axpy.cu" "$work/cases/$1/"
    cp -a "$work/cases/$1" "$work/cases/$1.before"
}
same() { diff -r "$work/cases/$1.before" "$work/cases/$1" >/dev/null && echo same || echo changed; rm -rf "$work/cases/$1.before"; }
ran() { # ARGUMENTS…: the exit status; output in $work/out and err
    local status=0
    (cd "$work/cases" && "$lint" rebuild -t h100@580 -t a100@580 --tag $lane/new:1 "$@") >"$work/out" 2>"$work/err" || status=$?
    echo $status
}
verdicts() { # before and after of the H100, from JSON
    python3 -c 'import json, sys
built = json.load(open(sys.argv[1]))["builds"][-1]
print(built["effect"]["basis"], *built["effect"]["verdicts"]["h100@580"])' "$work/out"
}
left() { find "$TMPDIR" -mindepth 1 -maxdepth 1 -name 'imagelint-*' | wc -l; }

for case in torch-list gencode arg cmake; do
    for builder in buildah podman; do
        [ $builder = buildah ] || [ $case = gencode ] || continue
        fresh $case
        extra=(); [ $builder = buildah ] || extra=(-- --isolation chroot)
        check "$case, by the file alone, $builder" 0 "$(ran --builder $builder --dockerfile $case/Dockerfile "${extra[@]}")"
        check "$case: files" same "$(same $case)"
    done
    fresh $case
    buildah build -q -t $lane/old:1 "$work/cases/$case" >/dev/null
    rm -f "$work/old.tar"; buildah push -q $lane/old:1 "oci-archive:$work/old.tar"
    check "$case, by its image" 0 "$(ran "$work/old.tar" --builder buildah --dockerfile $case/Dockerfile --format json)"
    check "$case: measured before and after" "measured fail ok" "$(verdicts)"
    check "$case: files" same "$(same $case)"
    rm -f "$work/old.tar"
done

fresh arg
check "arg, written in place" 0 "$(ran --builder buildah --dockerfile arg/Dockerfile --write)"
check "arg: files" changed "$(same arg)"
check "arg: the list" 'ARG CUDA_ARCHS="80;86;90"' "$(head -1 "$work/cases/arg/Dockerfile")"

fresh hidden
check "hidden: a list that no edit reaches" 1 "$(ran --builder buildah --dockerfile hidden/Dockerfile --write)"
check "hidden: files" same "$(same hidden)"

fresh broken
check "broken: a build that fails" 2 "$(ran --builder buildah --dockerfile broken/Dockerfile --write)"
check "broken: files" same "$(same broken)"
check "broken: its last lines" 1 "$(sed -n '/^error: buildah could not build/,$p' "$work/err" | grep -c 'missing.cu: No such file')"

fresh gencode
check "no builder" 2 "$(PATH=/nonexistent ran --dockerfile gencode/Dockerfile)"
check "no builder: what to install" 1 "$(grep -c 'installing buildah or podman' "$work/err")"

# A signal in the middle of a build.
fresh torch-list
sed -i 's/^RUN python3/RUN sleep 321 \&\& python3/' "$work/cases/torch-list/Dockerfile"
cp "$work/cases/torch-list/Dockerfile" "$work/cases/torch-list.before/"
(cd "$work/cases" && exec "$lint" rebuild --builder buildah --dockerfile torch-list/Dockerfile -t h100@580) >"$work/out" 2>"$work/err" &
child=$!
for _ in $(seq 100); do pgrep -f 'sleep 321' >/dev/null && break; sleep 0.1; done
kill -INT $child; status=0; wait $child || status=$?
check "interrupted" 130 $status
sleep 0.5
check "interrupted: processes" 0 "$(pgrep -fc '^sleep 321' || true)"
check "interrupted: files" same "$(same torch-list)"

check "temporary files" 0 "$(left)"
buildah rm -a >/dev/null 2>&1 || true
buildah rmi -f $lane/new:1 $lane/old:1 >/dev/null 2>&1 || true
buildah rmi --prune >/dev/null 2>&1 || true
[ $failed = 0 ] && echo "all as expected" || { echo "$failed wrong"; exit 1; }
