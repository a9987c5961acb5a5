#!/bin/bash
# mklib.sh OUT.so SONAME|- WORD...
#
# Writes a small shared object that asks and offers what a real library does. Nothing in it is ever run. WORD is
#   needs:LIB              a DT_NEEDED                      has:SYM[@VERSION]          a function that it defines
#   asks:SYM[@VERSION]=LIB a function that it calls from LIB (which becomes a DT_NEEDED)
#   has:@VERSION           a version without symbols        asks:@VERSION=LIB          a version without a symbol of interest
#   says:TEXT              a string, as names passed to dlopen and versions that tools print are
#   rpath:DIRS             DT_RPATH                         runpath:DIRS               DT_RUNPATH
#   elf:ARCH ptx:ARCH +    device code, as mkfat.sh takes it (with PTXAS, FATBINARY …)
# MACHINE=aarch64 as in mkfat.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1; soname=$2; shift 2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

device=(); flags=(); libs=(); strings=(); calls=()
declare -A defines=() wants=() needed=()
need() { [ -n "${needed[$1]:-}" ] || { needed[$1]=1; libs+=("$1"); }; }
for word in "$@"; do
    rest=${word#*:}
    case $word in
        + | elf:* | ptx:*) device+=("$word") ;;
        needs:*) need "$rest" ;;
        says:*) strings+=("$rest") ;;
        rpath:*) flags+=("-Wl,--disable-new-dtags,-rpath,$rest") ;;
        runpath:*) flags+=("-Wl,--enable-new-dtags,-rpath,$rest") ;;
        has:*) version=-; [[ $rest != *@* ]] || version=${rest#*@}
               defines[$version]+=" ${rest%@*}" ;;
        asks:*) of=${rest##*=}; rest=${rest%=*}; version=-; [[ $rest != *@* ]] || version=${rest#*@}
                symbol=${rest%@*}; symbol=${symbol:-imagelint_any_${version//[^A-Za-z0-9]/_}}
                need "$of"; wants[$of]+=" $version:$symbol"; calls+=("$symbol") ;;
        *) echo "mklib.sh: what is '$word'?" >&2; exit 1 ;;
    esac
done

functions() { for s in "$@"; do printf '.globl %s\n.type %s,@function\n%s: ret\n.size %s,.-%s\n' "$s" "$s" "$s" "$s" "$s"; done; }
script() { # VERSION: SYMBOLS, one pair of arguments each
    while [ $# -gt 0 ]; do
        echo "$1 {"; [ -z "${2// }" ] || { echo "  global:"; for s in $2; do echo "    $s;"; done; }
        echo "};"; shift 2
    done
}

# what the libraries asked for must look like for the linker to write the versions down
for lib in "${libs[@]}"; do
    declare -A given=()
    for pair in ${wants[$lib]:-}; do given[${pair%%:*}]+=" ${pair#*:}"; done
    pairs=(); { printf '.section .note.GNU-stack,"",@progbits\n.text\n'
        for version in "${!given[@]}"; do functions ${given[$version]}; done; } >"$work/needed.S"
    for version in "${!given[@]}"; do [ "$version" = - ] || pairs+=("$version" "${given[$version]}"); done
    unset given
    script "${pairs[@]}" >"$work/needed.map"
    gcc -shared -nostdlib ${pairs:+-Wl,--version-script="$work/needed.map"} -Wl,-soname,"$lib" -o "$work/$lib" "$work/needed.S"
done

pairs=(); for version in $(printf '%s\n' "${!defines[@]}" | sort -V); do
    [ "$version" = - ] || pairs+=("$version" "${defines[$version]}")
done
{
    printf '.section .note.GNU-stack,"",@progbits\n.text\n'
    for version in "${!defines[@]}"; do functions ${defines[$version]}; done
    if [ ${#calls[@]} -gt 0 ]; then echo '.type imagelint_case,@function'; echo 'imagelint_case:'; for s in "${calls[@]}"; do echo "call $s@PLT"; done; echo ret; fi
    if [ ${#strings[@]} -gt 0 ]; then echo '.section .rodata'; for s in "${strings[@]}"; do printf '.asciz "%s"\n' "$s"; done; fi
} >"$work/lib.S"
gcc -c -o "$work/lib.o" "$work/lib.S"
if [ ${#pairs[@]} -gt 0 ]; then
    script "${pairs[@]}" >"$work/lib.map"; flags+=("-Wl,--version-script=$work/lib.map")
fi
words=("$work/lib.o" "-L$work" -Wl,--no-as-needed "${flags[@]}"); for lib in "${libs[@]}"; do words+=("-l:$lib"); done
[ "$soname" != - ] || soname=
mkdir -p "$(dirname "$out")"
if [ ${#device[@]} -gt 0 ]; then
    SONAME=$soname LDX="${words[*]}" "$here/mkfat.sh" "$out" "${device[@]}"
else
    gcc -shared -nostdlib -Wl,--build-id=none -Wl,-z,max-page-size=4096 -s ${soname:+-Wl,-soname,"$soname"} -o "$out" "${words[@]}"
    [ "${MACHINE:-}" != aarch64 ] || printf '\267\000' | dd of="$out" bs=1 seek=18 conv=notrunc status=none
fi
