#!/bin/bash
# run.sh [WORKDIR] [STACK...]   builds stacks that are known to work as real images, scans them, and compares with expect.tsv.
#
#   IMAGELINT   the program (default: imagelint)
#   KEEP=1      keep WORKDIR/STACK/opt (as large as the unpacked wheels: 1 to 11 GB each)
#   RESCAN=1    scan again where evidence is already there
#   JUDGE=1     build nothing: judge the evidence that is there (milliseconds a stack)
# WORKDIR (default: a folder stacks-work here beside) gets base-slim and base-gcc (Debian packages, once), STACK/ (gone after the
# scan), evidence/STACK.json.gz, evidence/STACK.freeze (what pip chose), evidence/STACK.log.
# Needs apt-get, dpkg-deb, python3.11 with pip. One stack after the other; the largest needs 14 GB of disk while it is built.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-$here/stacks-work}"; work=$(cd "${1:-$here/stacks-work}" && pwd); shift || true
imagelint=${IMAGELINT:-imagelint}
evidence=$work/evidence; mkdir -p "$evidence" "$work/tmp"

system=(python3-minimal python3.11 libstdc++6 libgomp1 base-files bash coreutils ca-certificates)
compiler=(gcc g++ libpython3.11-dev)
platforms=(); for p in 2_36 2_35 2_34 2_31 2_28 2_27 2_26 2_24 2_17 2_12 2_5; do platforms+=(--platform "manylinux_${p}_x86_64"); done
for p in 2014 2010 1; do platforms+=(--platform "manylinux${p}_x86_64"); done

base() { # slim|gcc
    [ -e "$work/base-$1/.done" ] || {
        rm -rf "$work/base-$1"
        case $1 in slim) "$here/base.sh" "$work/base-$1" "${system[@]}" ;; gcc) "$here/base.sh" "$work/base-$1" "${system[@]}" "${compiler[@]}" ;; esac
        touch "$work/base-$1/.done"
    }
}
build() { # STACK REQUIREMENT...: a virtual environment as `python3 -m venv /opt/venv` and pip would leave it
    local venv=$work/$1/opt/venv stack=$1; shift
    local site=$venv/lib/python3.11/site-packages lock=()
    [ ! -e "$here/resolved/$stack.txt" ] || lock=(--constraint "$here/resolved/$stack.txt")
    rm -rf "${work:?}/$stack"; mkdir -p "$site" "$venv/bin"
    TMPDIR=$work/tmp pip install --quiet --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore \
        --target "$site" --only-binary=:all: --implementation cp --python-version 3.11 "${platforms[@]}" "${lock[@]}" "$@"
    [ ! -d "$site/bin" ] || { mv "$site/bin/"* "$venv/bin/"; rmdir "$site/bin"; }
    printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n' >"$venv/pyvenv.cfg"
    ln -s /usr/bin/python3 "$venv/bin/python3"; ln -s python3 "$venv/bin/python"
    pip list --format=freeze --disable-pip-version-check --path "$site" >"$evidence/$stack.freeze"
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

only=" $* "; names=(); failed=0
while IFS=$'\t' read -r stack base needs env _; do
    [[ $stack != \#* && -n $stack ]] || continue
    [ "$only" = "  " ] || [[ $only = *" $stack "* ]] || continue
    names+=("$stack")
    [ -z "${JUDGE:-}" ] || continue
    [ ! -e "$evidence/$stack.json.gz" ] || [ -n "${RESCAN:-}" ] || continue
    [ "$env" != - ] || env=
    # shellcheck disable=SC2086
    if base "$base" && { [ -e "$work/$stack/.built" ] || { build "$stack" $needs && touch "$work/$stack/.built"; }; } && scan "$stack" "$base" $env; then
        echo "$stack: $(du -sh "$work/$stack" | cut -f1), evidence $(du -h "$evidence/$stack.json.gz" | cut -f1)"
    else failed=1; fi
    [ -n "${KEEP:-}" ] || rm -rf "${work:?}/$stack"
done <"$here/stacks.tsv"
python3 "$here/judge.py" "$imagelint" "$evidence" "${names[@]}" || failed=1
exit $failed
