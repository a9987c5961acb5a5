#!/bin/sh
# Makes the databases of this directory again: ./make.sh (rpm with rpmbuild, zstd). RPM_NDB names an rpm whose list of
# backends has ndb (`rpm --showrc`); Debian's has not, one built with `./configure --enable-ndb` has.
# Packages are made here from the specs below; nothing of any vendor is in them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export SOURCE_DATE_EPOCH=1700000000 HOME="$work"
define() { rpmbuild -bb --quiet --target x86_64-linux --define "_topdir $work/build" --define '_buildhost host' \
    --define 'use_source_date_epoch_as_buildtime 1' --define '_build_id_links none' --define 'debug_package %{nil}' \
    --define '__os_install_post %{nil}' "$1" >/dev/null; }

cat >demo-libs.spec <<'T'
Name: demo-libs
Epoch: 1
Version: 2.5
Release: 3.el9
Summary: Files in several directories
License: MIT
Requires: cuda-drivers >= 560, nvidia-driver-cuda-libs, demo-config
AutoReqProv: no
%description
.
%install
mkdir -p %{buildroot}/usr/lib64/demo %{buildroot}/usr/local/cuda-12.8/lib64 %{buildroot}/usr/share/doc/demo
for f in usr/lib64/libdemo.so.2 usr/lib64/demo/plugin.so usr/local/cuda-12.8/lib64/libdemo.so.12 usr/share/doc/demo/README; do
    echo demo >%{buildroot}/$f
done
%files
/usr/lib64/libdemo.so.2
/usr/lib64/demo
/usr/local/cuda-12.8/lib64/libdemo.so.12
/usr/share/doc/demo/README
T
cat >demo-config.spec <<'T'
Name: demo-config
Version: 1.0
Release: 1
Summary: No files
License: MIT
BuildArch: noarch
%description
.
%files
T
# One with so many files that its header spans pages of sqlite, and some that fill a tree of pages.
cat >demo-many.spec <<'T'
Name: demo-many
Version: 7
Release: 1
Summary: Many files
License: MIT
BuildArch: noarch
AutoReqProv: no
%description
.
%install
mkdir -p %{buildroot}/opt/many
for i in $(seq 0 299); do echo x >%{buildroot}/opt/many/file$i.so; done
%files
/opt/many
T
for i in $(seq 0 39); do
    sed "s/^Name: .*/Name: demo-small$i/; s/^Version: .*/Version: $i/" demo-config.spec >demo-small$i.spec
done
for spec in *.spec; do define "$spec"; done

for backend in sqlite ndb; do
    program=rpm
    [ $backend = sqlite ] || program=${RPM_NDB:-rpm}
    db() { "$program" --root "$work/$backend" --define "_db_backend $backend" --define '_dbpath /var/lib/rpm' "$@"; }
    mkdir -p "$work/$backend"
    db --initdb
    db -i --nodeps --justdb --nosignature "$work"/build/RPMS/*/*.rpm
    db -e --nodeps --justdb demo-small7
    db -qa --qf '%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}[ %{FILENAMES}]\n' | LC_ALL=C sort >"$work/$backend.txt"
done
cmp sqlite.txt ndb.txt
cp sqlite.txt "$here/rpm.txt"
zstd -19 -q -f sqlite/var/lib/rpm/rpmdb.sqlite -o "$here/rpmdb.sqlite.zst"
zstd -19 -q -f ndb/var/lib/rpm/Packages.db -o "$here/Packages.db.zst"
