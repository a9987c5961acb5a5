#!/bin/bash
# run.sh [WORKDIR] [STACK...]   builds stacks that are known to work as real images, scans them, and compares with expect.tsv.
#
#   IMAGELINT   the program (default: imagelint)
#   KEEP=1      keep WORKDIR/STACK/opt (as large as the unpacked wheels: 1 to 11 GB each)
#   RESCAN=1    scan again where evidence is already there
#   CHROOT=1    (root only) also import the stack's modules with the image's own Python and loader, without a GPU, and list
#               what the loader takes for each library: evidence/STACK.import, evidence/STACK.ld.gz
#   JUDGE=1     build nothing: judge the evidence that is there (milliseconds a stack)
# WORKDIR (default: a folder stacks-work here beside) gets base-slim and base-gcc (Debian packages, once), STACK/ (gone after the
# scan), evidence/STACK.json.gz, evidence/STACK.freeze (what pip chose), evidence/STACK.log.
# Needs apt-get, dpkg-deb, python3.11 with pip. One stack after the other; the largest needs 14 GB of disk while it is built.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-$here/stacks-work}"; work=$(cd "${1:-$here/stacks-work}" && pwd); shift || true
exec 9>"$work/.lock"; flock -n 9 || { echo "run.sh: another run is at work in $work" >&2; exit 2; }
imagelint=${IMAGELINT:-imagelint}
command -v "$imagelint" >/dev/null || { echo "run.sh: no program $imagelint; set IMAGELINT" >&2; exit 2; }
evidence=$work/evidence; mkdir -p "$evidence" "$work/tmp"

system=(python3-minimal python3.11 libstdc++6 libgomp1 base-files bash coreutils ca-certificates)
compiler=(gcc g++ libpython3.11-dev libnuma1)   # libnuma: what sgl-kernel asks of the system
platforms=(); for p in $(seq 36 -1 5); do platforms+=(--platform "manylinux_2_${p}_x86_64"); done
for p in 2014 2010 1; do platforms+=(--platform "manylinux${p}_x86_64"); done

base() { # slim|gcc
    [ -e "$work/base-$1/.done" ] || {
        rm -rf "$work/base-$1"
        local packages=("${system[@]}"); [ "$1" != gcc ] || packages+=("${compiler[@]}")
        "$here/base.sh" "$work/base-$1" "${packages[@]}" || return 1
        touch "$work/base-$1/.done"
    }
}
build() { # STACK REQUIREMENT...: a virtual environment as `python3 -m venv /opt/venv` and pip would leave it
    local venv=$work/$1/opt/venv stack=$1; shift
    local site=$venv/lib/python3.11/site-packages lock=()
    [ ! -e "$here/resolved/$stack.txt" ] || lock=(--constraint "$here/resolved/$stack.txt")
    rm -rf "${work:?}/$stack"; mkdir -p "$site" "$venv/bin"
    [ -e "$work/pip/bin/pip" ] || python3 -m venv "$work/pip"   # a pip that sees none of this machine's packages
    TMPDIR=$work/tmp "$work/pip/bin/pip" install --quiet --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore \
        --target "$site" --only-binary=:all: --implementation cp --python-version 3.11 "${platforms[@]}" "${lock[@]}" "$@" || return 1
    [ ! -d "$site/bin" ] || { mv "$site/bin/"* "$venv/bin/"; rmdir "$site/bin"; }
    printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n' >"$venv/pyvenv.cfg"
    ln -s /usr/bin/python3 "$venv/bin/python3"; ln -s python3 "$venv/bin/python"
    "$work/pip/bin/pip" list --format=freeze --disable-pip-version-check --path "$site" >"$evidence/$stack.freeze"
}
scan() { # STACK BASE ENV...
    local stack=$1 base=$2 e args=(); shift 2
    for e in "PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin" NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility "$@"; do
        args+=(--env "$e")
    done
    local status=0
    "$here/pack.py" "${args[@]}" --cmd python3 --tag "$stack:latest" "$work/base-$base" "$work/$stack" |
        "$imagelint" scan - --fleet "$here/fleets/$stack.toml" --save-evidence "$work/tmp/$stack.json" --stats --width 140 \
            >"$evidence/$stack.log" 2>&1 || status=$?
    [ -s "$work/tmp/$stack.json" ] || { echo "$stack: not scanned, exit $status"; tail -5 "$evidence/$stack.log"; return 1; }
    gzip -9 <"$work/tmp/$stack.json" >"$evidence/$stack.json.gz"; rm "$work/tmp/$stack.json"
}

try() { # STACK BASE MODULES ENV...: what glibc and Python say, for comparison; needs chroot
    local stack=$1 base=$2 modules=$3 root=$work/tmp/root; shift 3
    rm -rf "$root"; cp -al "$work/base-$base" "$root"; mv "$work/$stack/opt" "$root/opt.new"; rm -rf "$root/opt"; mv "$root/opt.new" "$root/opt"
    mkdir -p "$root/proc" "$root/dev"; cp -a /dev/null /dev/zero /dev/random /dev/urandom "$root/dev/"; mount -t proc proc "$root/proc" 2>/dev/null || true
    local in=(chroot "$root" /usr/bin/env -i PATH=/opt/venv/bin:/usr/bin:/bin HOME=/root "$@")
    local m; for m in $modules; do
        echo "== import $m"; timeout 300 "${in[@]}" /opt/venv/bin/python -c "import $m; print('imported', getattr($m, '__version__', ''))" 2>&1 | tail -5 || true
    done >"$evidence/$stack.import"
    # one line per library and name, "library: name => file": the loader starts from each library as if it were a program
    (cd "$root" && find opt/venv -type f \( -name '*.so' -o -name '*.so.*' \) | LC_ALL=C sort) | while read -r f; do
        "${in[@]}" /lib64/ld-linux-x86-64.so.2 --list "/$f" </dev/null 2>&1 | sed "s|^[[:space:]]*|$f: |; s| (0x[0-9a-f]*)$||"
    done | gzip -9 >"$evidence/$stack.ld.gz" || true
    umount "$root/proc" 2>/dev/null || true
    mv "$root/opt" "$work/$stack/opt"; rm -rf "$root"
}

only=" $* "; names=(); failed=0
while IFS=$'\t' read -r stack base needs modules env _; do
    [[ $stack != \#* && -n $stack ]] || continue
    [ "$only" = "  " ] || [[ $only = *" $stack "* ]] || continue
    names+=("$stack")
    [ -z "${JUDGE:-}" ] || continue
    [ ! -e "$evidence/$stack.json.gz" ] || [ -n "${RESCAN:-}" ] || continue
    [ "$env" != - ] || env=
    # shellcheck disable=SC2086
    if base "$base" && { [ -e "$work/$stack/.built" ] || { build "$stack" $needs && touch "$work/$stack/.built"; }; } && scan "$stack" "$base" $env; then
        # shellcheck disable=SC2086
        [ -z "${CHROOT:-}" ] || try "$stack" "$base" "$modules" $env
        echo "$stack: $(du -sh "$work/$stack" | cut -f1), evidence $(du -h "$evidence/$stack.json.gz" | cut -f1)"
    else failed=1; fi
    [ -n "${KEEP:-}" ] || rm -rf "${work:?}/$stack"
done <"$here/stacks.tsv"
python3 "$here/judge.py" "$imagelint" "$evidence" "${names[@]}" || failed=1
exit $failed
