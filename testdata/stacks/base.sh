#!/bin/bash
# base.sh DIR [PACKAGE...]   lays the Debian packages and all that they depend on (the closure from nothing) into DIR, as an image's
# base layer: files, dpkg's database, ld.so.cache. No maintainer script is run, no root and no chroot needed. Documentation and
# translations are left out. The release is the one that this machine's apt knows.
set -euo pipefail
mkdir -p "$1"; root=$(cd "$1" && pwd); shift
debs=$root.debs; mkdir -p "$debs"
mapfile -t names < <(apt-get -o Dir::State::status=/dev/null -o APT::Install-Recommends=0 -o Debug::NoLocking=1 -qq --print-uris \
    install "$@" | sed -n "s/^'[^']*' \([^_ ]*\)_.*/\1/p" | sort -u)
[ ${#names[@]} -gt 0 ] || { echo "base.sh: apt knows no such packages; apt-get update?" >&2; exit 1; }
(cd "$debs" && apt-get -qq download "${names[@]}")
for d in bin sbin lib lib64; do mkdir -p "$root/usr/$d"; ln -sfn usr/$d "$root/$d"; done   # merged /usr
mkdir -p "$root/var/lib/dpkg/info" "$root/etc" "$root/tmp" "$root/root"
: >"$root/var/lib/dpkg/status"
for deb in "$debs"/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --no-same-owner \
        --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --exclude='./usr/share/info/*'
    name=$(dpkg-deb -f "$deb" Package); multi=$(dpkg-deb -f "$deb" Multi-Arch)
    list=$name; [ "$multi" != same ] || list=$name:$(dpkg-deb -f "$deb" Architecture)
    { dpkg-deb -f "$deb" | sed '1a Status: install ok installed'; echo; } >>"$root/var/lib/dpkg/status"
    dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\./|/|; s|/$||; s|^$|/.|' >"$root/var/lib/dpkg/info/$list.list"
done
printf 'root:x:0:0:root:/root:/bin/bash\n' >"$root/etc/passwd"; printf 'root:x:0:\n' >"$root/etc/group"   # as base-passwd's script does
for pair in cc:gcc c++:g++; do   # what update-alternatives would have linked
    [ ! -e "$root/usr/bin/${pair#*:}" ] || [ -e "$root/usr/bin/${pair%:*}" ] || ln -s "${pair#*:}" "$root/usr/bin/${pair%:*}"
done
rm -rf "$debs"
/sbin/ldconfig -r "$root"; rm -rf "$root/var/cache/ldconfig"
