#!/bin/sh
# mkfat.sh OUT.so ITEM... [+ ITEM...]
#
# Writes a shared object whose .nv_fatbin holds real device code. ITEM is elf:ARCH (machine code) or
# ptx:ARCH[@ISA] (PTX text). A lone "+" starts a new fatbin region, as a second translation unit would.
#   PTXAS, PTXAS13   ptxas 12.9 (5.0 to 12.1) and 13.x (10.7 and 11.0)     FATBINARY   fatbinary 13.x
#   FATFLAGS         flags for fatbinary, e.g. "--compress-all"            SONAME      DT_SONAME
#   LDX              more words for the linker (DT_NEEDED, RPATH)
#   MACHINE=aarch64  marks the file as AArch64 (the ELF header only: nothing in it is ever run)
set -eu
out=$1; shift
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
region=0; images=

close_region() {
    [ -n "$images" ] || return 0
    # shellcheck disable=SC2086
    "$FATBINARY" -64 ${FATFLAGS:-} --create="$work/$region.fatbin" $images
    region=$((region + 1)); images=
}

for item in "$@"; do
    if [ "$item" = + ]; then close_region; continue; fi
    kind=${item%%:*}; rest=${item#*:}; arch=${rest%@*}; isa=${rest#*@}
    [ "$isa" != "$rest" ] || isa=
    case $arch in
        107*) isa=${isa:-9.4} ;;
        110*) isa=${isa:-9.0} ;;
        1[0-9][0-9]*) isa=${isa:-8.8} ;;
        *a) isa=${isa:-8.0} ;;
        *) isa=${isa:-7.8} ;;
    esac
    text=$work/$region.$kind.$arch.ptx
    cat >"$text" <<PTX
.version $isa
.target sm_$arch
.address_size 64
.visible .entry fill(.param .u64 p)
{
    .reg .u64 %rd;
    ld.param.u64 %rd, [p];
    st.global.u32 [%rd], 1;
    ret;
}
PTX
    if [ "$kind" = elf ]; then
        case $arch in 107* | 110*) as=$PTXAS13 ;; *) as=$PTXAS ;; esac
        "$as" -arch="sm_$arch" "$text" -o "$work/$region.$arch.cubin"
        images="$images --image3=kind=elf,sm=$arch,file=$work/$region.$arch.cubin"
    else
        images="$images --image3=kind=ptx,sm=$arch,file=$text"
    fi
done
close_region

{
    printf '.section .note.GNU-stack,"",@progbits\n.section .nv_fatbin,"a",@progbits\n'
    i=0
    while [ $i -lt $region ]; do
        printf '.balign 8\nregion%d:\n.incbin "%s/%d.fatbin"\n' $i "$work" $i; i=$((i + 1))
    done
    printf '.section .nvFatBinSegment,"aw",@progbits\n.balign 8\n'
    i=0
    while [ $i -lt $region ]; do
        printf '.long 0x466243b1\n.long 1\n.quad region%d\n.quad 0\n' $i; i=$((i + 1))
    done
} >"$work/image.S"
# shellcheck disable=SC2086
"${CC:-gcc}" -shared -nostdlib -Wl,--build-id=none -Wl,-z,max-page-size=4096 -s \
    ${SONAME:+-Wl,-soname,"$SONAME"} -o "$out" "$work/image.S" ${LDX:-}
if [ "${MACHINE:-}" = aarch64 ]; then
    printf '\267\000' | dd of="$out" bs=1 seek=18 conv=notrunc status=none   # e_machine = EM_AARCH64
fi
