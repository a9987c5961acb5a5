#!/bin/sh
# Makes the archives of this directory again: ./make.sh (python3, Info-ZIP's zip, a JDK's jar).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p pkg/lib
python3 - <<'PY'
open("pkg/__init__.py", "w").write("import os\n" * 40)
open("pkg/lib/libdemo.so.1", "wb").write(b"\x7fELF" + bytes(range(256)) * 8)
open("pkg/empty.txt", "w").close()
PY
rm -f "$here"/*.zip "$here"/*.whl "$here"/*.jar
OUT="$here" python3 - <<'PY'
import os, zipfile
out = os.environ["OUT"]
stamp = (2024, 1, 1, 0, 0, 0)
def add(z, name, path=None, how=zipfile.ZIP_DEFLATED):
    info = zipfile.ZipInfo(name, stamp)
    info.compress_type = how
    z.writestr(info, open(path, "rb").read() if path else b"")
def fill(z):
    add(z, "pkg/", how=zipfile.ZIP_STORED)
    add(z, "pkg/__init__.py", "pkg/__init__.py")
    add(z, "pkg/lib/libdemo.so.1", "pkg/lib/libdemo.so.1", zipfile.ZIP_STORED)
    add(z, "pkg/empty.txt", "pkg/empty.txt")
with zipfile.ZipFile(f"{out}/python-zipfile.whl", "w") as z:
    fill(z)
# To a pipe: data descriptors with signature.
class Pipe:
    def __init__(self, f): self.f = f
    def write(self, b): return self.f.write(b)
    def flush(self): pass
with open(f"{out}/python-pipe.zip", "wb") as f, zipfile.ZipFile(Pipe(f), "w") as z:
    add(z, "pkg/__init__.py", "pkg/__init__.py")
    add(z, "pkg/lib/libdemo.so.1", "pkg/lib/libdemo.so.1")
    add(z, "pkg/empty.txt", "pkg/empty.txt")
with open(f"{out}/python-pipe-stored.zip", "wb") as f, zipfile.ZipFile(Pipe(f), "w") as z:
    add(z, "pkg/empty.txt", "pkg/empty.txt", zipfile.ZIP_STORED)
    add(z, "pkg/lib/libdemo.so.1", "pkg/lib/libdemo.so.1", zipfile.ZIP_STORED)
with zipfile.ZipFile(f"{out}/python-lzma.zip", "w") as z:
    add(z, "pkg/__init__.py", "pkg/__init__.py", zipfile.ZIP_LZMA)
    add(z, "pkg/lib/libdemo.so.1", "pkg/lib/libdemo.so.1")
PY
TZ=UTC touch -d 2024-01-01T00:00:00Z pkg pkg/lib pkg/* pkg/lib/*
TZ=UTC zip -qrX "$here/infozip.zip" pkg
TZ=UTC zip -qrX - pkg | cat >"$here/infozip-pipe.zip"
TZ=UTC zip -qrX -fz - pkg | cat >"$here/infozip-pipe-zip64.zip"
TZ=UTC zip -qrX -P secret "$here/infozip-encrypted.zip" pkg
{ printf '#!/bin/sh\nexec unzip -q "$0"\n'; cat "$here/infozip.zip"; } >"$here/self-extracting.zip"
jar --create --file "$here/jdk.jar" --date 2024-01-01T00:00:00Z pkg
