#!/usr/bin/env python3
"""mk_cases.py OUT: one small tree per law of the dynamic loader, of libraries without code.

A case is a function; its docstring says what it shows. Libraries are made with gcc -nostdlib and take some KB each;
what they need is named by linking against stubs. No libc is in the trees: check.py brings the loader."""

import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

OUT = sys.argv[1]
TMP = tempfile.mkdtemp()
MULTI = "usr/lib/x86_64-linux-gnu"
CASES = []
LEAN = ["-nostdlib", "-shared", "-Wl,-z,max-page-size=4096", "-Wl,-z,noseparate-code", "-Wl,--build-id=none", "-s"]
LEAN += ["-Wl,-z,norelro", "-Wl,--hash-style=sysv", "-Wl,--no-as-needed"]
open(TMP + "/e.c", "w").write("")
stubs = {}


def gcc(*args):
    subprocess.run(["gcc", *args], check=True)


def stub(name):
    """A library that makes whoever links it need that name."""
    if name not in stubs:
        path = f"{TMP}/stub{len(stubs)}.so"
        gcc(*LEAN, "-o", path, TMP + "/e.c", "-Wl,-soname," + name)
        stubs[name] = path
    return stubs[name]


def case(make):
    CASES.append(make)
    return make


class Tree:
    def __init__(self, name):
        self.name = name
        self.top = f"{OUT}/{name}"
        self.root = self.top + "/root"
        shutil.rmtree(self.top, ignore_errors=True)
        os.makedirs(self.root)
        self.env = []
        self.text("etc/os-release", "ID=debian\n")

    def at(self, path):
        full = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return full

    def lib(self, path, *needed, soname=None, rpath=None, runpath=None, nodeflib=False, machine=None, program=None):
        full = self.at(path)
        args = [*LEAN, "-o", full, TMP + "/e.c", *map(stub, needed)]
        if soname:
            args.append("-Wl,-soname," + soname)
        if runpath is not None:
            args += ["-Wl,--enable-new-dtags", "-Wl,-rpath," + runpath]
        elif rpath is not None:
            args += ["-Wl,--disable-new-dtags", "-Wl,-rpath," + rpath]
        if nodeflib:
            args.append("-Wl,-z,nodefaultlib")
        if program:
            args.append("-Wl,--dynamic-linker=" + program)
            # An interpreter needs something in it to be kept.
            open(TMP + "/p.c", "w").write(f'const char interp[] __attribute__((section(".interp"))) = "{program}";')
            args[args.index(TMP + "/e.c")] = TMP + "/p.c"
        gcc(*args)
        if machine:
            with open(full, "r+b") as f:
                f.seek(18)
                f.write(struct.pack("<H", machine))
        return self

    def exe(self, path, *needed, interpreter="/lib64/ld-linux-x86-64.so.2", **more):
        return self.lib(path, *needed, program=interpreter, **more)

    def text(self, path, text=""):
        open(self.at(path), "w").write(text)
        return self

    def link(self, path, to):
        os.symlink(to, self.at(path))
        return self

    def ldconfig(self):
        subprocess.run(["ldconfig", "-r", self.root], check=True, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.root + "/var", ignore_errors=True)
        return self


# ---- where a name is looked for ---------------------------------------------------------------------------------------
@case
def default_dirs(t):
    "four built-in directories, in their order"
    for i, d in enumerate(["lib/x86_64-linux-gnu", MULTI, "lib", "usr/lib"]):
        for k in range(i + 1):
            t.lib(f"{d}/lib{k}.so")
    t.exe("p", "lib0.so", "lib1.so", "lib2.so", "lib3.so", "libnone.so")


@case
def rpath_own(t):
    "DT_RPATH of the file, before LD_LIBRARY_PATH"
    t.lib("a/libx.so").lib("env/libx.so").exe("p", "libx.so", rpath="/none:/a")
    t.env = ["LD_LIBRARY_PATH=/env"]


@case
def runpath_own(t):
    "DT_RUNPATH of the file, behind LD_LIBRARY_PATH, before the built-in directories"
    t.lib("a/libx.so").lib("a/liby.so").lib("env/libx.so").lib(MULTI + "/liby.so")
    t.exe("p", "libx.so", "liby.so", runpath="/a")
    t.env = ["LD_LIBRARY_PATH=/env"]


@case
def rpath_grandparent(t):
    "the RPATH of the program serves what its libraries' libraries need"
    t.lib("a/liba.so", "libb.so").lib("b/libb.so", "libc1.so").lib("c/libc1.so")
    t.exe("p", "liba.so", rpath="/a:/b:/c")


@case
def runpath_not_inherited(t):
    "RUNPATH serves the file alone"
    t.lib("a/liba.so", "libb.so").lib("a/libb.so").exe("p", "liba.so", runpath="/a")


@case
def rpath_between(t):
    "a file with RUNPATH takes no RPATH for itself; what it loads does"
    t.lib("a/libmid.so", "libleaf.so", "libonly.so", runpath="/mid").lib("mid/libleaf.so", "libdeep.so")
    t.lib("a/libdeep.so").lib("a/libonly.so").exe("p", "libmid.so", rpath="/a")


@case
def rpath_and_runpath(t):
    "with both, RPATH is as if it were not there"
    t.lib("opt/a/libx.so").exe("p", "libx.so", runpath="/none/opt/a")
    # DT_RPATH is put into a spare entry; its text is the tail of the other.
    data = bytearray(open(t.root + "/p", "rb").read())
    at = data.find(struct.pack("<Q", 29))
    while True:
        value = struct.unpack_from("<Q", data, at + 8)[0]
        if at % 8 == 0 and 0 < value < 4096:
            break
        at = data.find(struct.pack("<Q", 29), at + 1)
    spare = at
    while struct.unpack_from("<Q", data, spare)[0]:
        spare += 16
    assert data[spare : spare + 32] == bytes(32)
    struct.pack_into("<QQ", data, spare, 15, value + len("/none"))
    open(t.root + "/p", "wb").write(data)


@case
def first_loader_decides(t):
    "the RPATHs of whoever loads a file first count for what it needs"
    t.lib("x/libshared.so", "libdep.so").lib("one/libdep.so").lib("two/libdep.so")
    t.lib("x/liba.so", "libshared.so", rpath="/x:/one").lib("x/libb.so", "libshared.so", rpath="/x:/two")
    t.exe("p", "libb.so", "liba.so", runpath="/x")


@case
def breadth_first(t):
    "what the program needs is loaded before what its libraries need"
    t.lib("x/liba.so", "libz.so", rpath="/deep").lib("deep/libz.so").lib("x/libz.so")
    t.exe("p", "liba.so", "libz.so", runpath="/x")


@case
def env_separators(t):
    "LD_LIBRARY_PATH: colons and semicolons, slashes at the end, directories that do not exist"
    t.lib("a/libx.so").lib("b/liby.so").lib("c d/libz.so").exe("p", "libx.so", "liby.so", "libz.so")
    t.env = ["LD_LIBRARY_PATH=/none:/a//;/b;/c d/"]


@case
def env_origin(t):
    "$ORIGIN in LD_LIBRARY_PATH is the program's"
    t.lib("opt/lib/libx.so", "liby.so").lib("opt/lib/liby.so").exe("opt/p", "libx.so")
    t.env = ["LD_LIBRARY_PATH=$ORIGIN/lib"]


@case
def nodeflib(t):
    "-z nodefaultlib: not the built-in directories, and not what the cache has from there"
    t.text("etc/ld.so.conf", "/opt/lib\n").lib(MULTI + "/libx.so").lib("opt/lib/liby.so").lib("lib/x86_64-linux-gnu/libz.so")
    t.ldconfig().exe("p", "libx.so", "liby.so", "libz.so", nodeflib=True)


# ---- tokens -----------------------------------------------------------------------------------------------------------
@case
def origin(t):
    "$ORIGIN and ${ORIGIN}, of a program and of a library"
    t.lib("opt/lib/liba.so", "libb.so", runpath="${ORIGIN}/more").lib("opt/lib/more/libb.so")
    t.exe("opt/bin/p", "liba.so", runpath="$ORIGIN/../lib")


@case
def origin_of_a_link(t):
    "$ORIGIN of a library is where the link lies by which it was found"
    t.lib("store/liba-1.so", "libb.so", runpath="$ORIGIN").link("opt/lib/liba.so", "/store/liba-1.so")
    t.lib("opt/lib/libb.so").exe("opt/p", "liba.so", runpath="/opt/lib")


@case
def origin_dotdot(t):
    ".. goes up from where a linked directory really is"
    t.lib("data/real/liba.so", "libb.so", runpath="$ORIGIN/../lib").link("opt/link", "/data/real")
    t.lib("data/lib/libb.so").lib("opt/lib/libb.so").exe("opt/p", "liba.so", runpath="/opt/link")


@case
def token_lib(t):
    "$LIB"
    t.lib("opt/lib/x86_64-linux-gnu/libx.so").lib("opt/lib64/libx.so").exe("p", "libx.so", runpath="/opt/$LIB")


@case
def token_platform(t):
    "$PLATFORM"
    t.lib("opt/x86_64/libx.so").exe("p", "libx.so", "liby.so", runpath="/opt/${PLATFORM}:/opt/$PLATFORM_").lib("opt/liby.so")


# ---- capabilities -----------------------------------------------------------------------------------------------------
@case
def hwcaps(t):
    "glibc-hwcaps below every directory that is searched"
    for d in ["a", MULTI, "env"]:
        t.lib(f"{d}/libbase.so")
    t.lib("a/glibc-hwcaps/x86-64-v3/libx.so").lib("a/glibc-hwcaps/x86-64-v2/libx.so").lib("a/libx.so")
    t.lib("a/glibc-hwcaps/x86-64-v4/liby.so").lib("a/liby.so").lib("env/glibc-hwcaps/x86-64-v2/libz.so").lib("env/libz.so")
    t.lib(MULTI + "/glibc-hwcaps/x86-64-v3/libw.so").lib("lib/x86_64-linux-gnu/libw.so")
    t.exe("p", "libx.so", "liby.so", "libz.so", "libw.so", runpath="/a")
    t.env = ["LD_LIBRARY_PATH=/env"]


@case
def hwcaps_cached(t):
    "ldconfig's entries for capabilities"
    t.text("etc/ld.so.conf", "/opt/lib\n")
    for sub in ["", "glibc-hwcaps/x86-64-v2/", "glibc-hwcaps/x86-64-v3/", "glibc-hwcaps/x86-64-v4/"]:
        t.lib(f"opt/lib/{sub}libx.so.1", soname="libx.so.1")
    t.ldconfig().exe("p", "libx.so.1")


@case
def legacy_dirs(t):
    "what glibc 2.36 and older try before each directory"
    t.lib(MULTI + "/libc-2.36.so", soname="libc.so.6").link(MULTI + "/libc.so.6", "libc-2.36.so")
    t.lib("a/tls/libx.so").lib("a/libx.so").lib("a/x86_64/liby.so").lib("a/liby.so").lib("a/tls/x86_64/libz.so").lib("a/libz.so")
    t.exe("p", "libx.so", "liby.so", "libz.so", "libc.so.6", runpath="/a")


# ---- the cache --------------------------------------------------------------------------------------------------------
@case
def cache(t):
    "ld.so.cache: by SONAME, before the built-in directories"
    t.text("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n").text("etc/ld.so.conf.d/a.conf", "# a\n/opt/a/ # b\n/opt/b\n")
    t.text("etc/ld.so.conf.d/z.other", "/opt/c\n").lib("opt/c/libc1.so")
    t.lib("opt/a/libx.so.1.2", soname="libx.so.1").lib("opt/b/libx.so.1.9", soname="libx.so.1").lib(MULTI + "/libx.so.1")
    t.lib("opt/b/libplain.so").ldconfig().exe("p", "libx.so.1", "libplain.so", "libc1.so", "libx.so.1.2")


@case
def cache_stale(t):
    "an entry whose file is gone is passed over; what came later is not found"
    t.text("etc/ld.so.conf", "/opt/a\n").lib("opt/a/libx.so").lib(MULTI + "/libx.so").lib("opt/a/liby.so").ldconfig()
    os.remove(t.root + "/opt/a/libx.so")
    os.remove(t.root + "/opt/a/liby.so")
    t.lib("opt/a/libnew.so").exe("p", "libx.so", "liby.so", "libnew.so")


@case
def cache_newest(t):
    "of files of one SONAME ldconfig takes the highest number, and a file before a link"
    t.text("etc/ld.so.conf", "/opt/a\n").lib("opt/a/libx.so.1.9", soname="libx.so.1").lib("opt/a/libx.so.1.10", soname="libx.so.1")
    t.lib("store/liby-impl.so", soname="liby.so.2").link("opt/a/liby.so.2", "/store/liby-impl.so").link("opt/a/libz.so", "liby.so.2")
    t.ldconfig().exe("p", "libx.so.1", "liby.so.2", "libz.so")


@case
def cache_wrong_machine(t):
    "an entry that leads to a file for another machine is passed over"
    t.text("etc/ld.so.conf", "/opt/a\n").lib("opt/a/libx.so").ldconfig().lib("opt/a/libx.so", machine=183)
    t.lib(MULTI + "/libx.so").exe("p", "libx.so")


@case
def no_cache(t):
    "without a cache the directories of ld.so.conf mean nothing"
    t.text("etc/ld.so.conf", "/opt/a\n").lib("opt/a/libx.so").lib("usr/local/lib/liby.so").exe("p", "libx.so", "liby.so")


# ---- names ------------------------------------------------------------------------------------------------------------
@case
def slash(t):
    "a name with a slash is a path, and takes tokens"
    t.lib("opt/liba.so").lib("opt/lib/libb.so").lib("opt/libc1.so", machine=183)
    t.exe("opt/p", "/opt/liba.so", "$ORIGIN/lib/libb.so", "/opt/libc1.so", "/none/libd.so", runpath="/opt")


@case
def soname_loaded(t):
    "what is loaded already serves by its SONAME; the name of its file counts too"
    t.lib("a/libfile.so", soname="libname.so.1").lib("b/libname.so.1").lib("b/libuser.so", "libname.so.1", "libfile.so")
    t.exe("p", "libfile.so", "libuser.so", runpath="/a:/b")


@case
def soname_is_not_searched(t):
    "a SONAME that is not the file's name is found only once the file is loaded"
    t.lib("a/libfile.so", soname="libname.so.1").exe("p", "libname.so.1", "libfile.so", runpath="/a")


@case
def same_file(t):
    "one file under two names is loaded once"
    t.lib("a/libreal.so", "libdep.so", runpath="$ORIGIN").lib("a/libdep.so").link("a/libalias.so", "libreal.so")
    t.exe("p", "libreal.so", "libalias.so", runpath="/a")


@case
def back_to_the_root(t):
    "a library that its own library needs"
    t.lib("a/liba.so", "libb.so", soname="liba.so", runpath="/a").lib("a/libb.so", "liba.so", soname="libb.so", runpath="/none")


@case
def the_loader_itself(t):
    "the loader is loaded under its SONAME before anything else"
    t.lib("a/ld-linux-x86-64.so.2", soname="ld-linux-x86-64.so.2").lib("lib64/ld-linux-x86-64.so.2", soname="ld-linux-x86-64.so.2")
    t.exe("p", "ld-linux-x86-64.so.2", runpath="/a")


@case
def preload(t):
    "LD_PRELOAD: paths and names, blanks and colons, what is missing is passed over"
    t.lib("pre/libx.so", soname="libx.so").lib("env/libx.so").lib("env/libq.so", "libdeep.so", soname="liby.so").lib("env/liby.so")
    t.lib("env/libdeep.so").exe("p", "libx.so", "liby.so", "libdeep.so")
    t.env = ["LD_LIBRARY_PATH=/env", "LD_PRELOAD=/pre/libx.so libq.so:/none.so"]


@case
def preload_file(t):
    "etc/ld.so.preload"
    t.lib("pre/libx.so", soname="libx.so").lib(MULTI + "/libx.so").exe("p", "libx.so").text("etc/ld.so.preload", "/pre/libx.so\n")


# ---- what stands in the way -------------------------------------------------------------------------------------------
@case
def links(t):
    "chains of links, absolute and relative; a link to nowhere is passed over, a circle ends the search of its list"
    t.lib("store/v1/libx.so.1.0").link("a/libx.so.1", "../store/v1/libx.so.1.0").link("a/libx.so", "/a/libx.so.1").link("lnk", "a")
    t.link("a/libgone.so", "nowhere").lib("b/libgone.so").link("a/libloop.so", "libloop.so").lib("b/libloop.so")
    t.lib(MULTI + "/libloop.so").exe("p", "libx.so", "libgone.so", "libloop.so", runpath="/lnk:/b")


@case
def other_machine(t):
    "files for another machine are passed over"
    t.lib("a/libx.so", machine=183).lib("b/libx.so").lib(MULTI + "/liby.so", machine=183).exe("p", "libx.so", "liby.so", runpath="/a:/b")


@case
def empty_file(t):
    "an empty file ends the search"
    t.text("a/libx.so").lib("b/libx.so").exe("p", "libx.so", runpath="/a:/b")


@case
def script(t):
    "so does a linker script"
    t.text("a/libx.so", "/* GNU ld script */\nGROUP ( /lib/libx.so.1 AS_NEEDED ( /lib/libx_nonshared.a ) )\n" * 4)
    t.lib("b/libx.so").exe("p", "libx.so", runpath="/a:/b")


@case
def cut_short(t):
    "so does half an ELF header"
    t.lib("a/libx.so").lib("b/libx.so").exe("p", "libx.so", runpath="/a:/b")
    os.truncate(t.root + "/a/libx.so", 30)


@case
def directory(t):
    "so does a directory"
    t.text("a/libx.so/readme").lib("b/libx.so").exe("p", "libx.so", runpath="/a:/b")


@case
def object_file(t):
    "so does an object file"
    gcc("-c", "-o", t.at("a/libx.so"), TMP + "/e.c")
    t.lib("b/libx.so").exe("p", "libx.so", runpath="/a:/b")


# ---- musl -------------------------------------------------------------------------------------------------------------
MUSL = "/lib/ld-musl-x86_64.so.1"


def musl(t):
    return t.lib(MUSL[1:], soname="libc.musl-x86_64.so.1")


@case
def musl_paths(t):
    "musl: LD_LIBRARY_PATH, RUNPATH, then its own three directories"
    musl(t).lib("env/libx.so").lib("a/libx.so").lib("a/liby.so").lib("lib/liby.so").lib("lib/libz.so").lib("usr/lib/libz.so")
    t.lib("usr/local/lib/libw.so").lib("usr/lib/libw.so").exe("p", "libx.so", "liby.so", "libz.so", "libw.so", interpreter=MUSL, runpath="/a")
    t.env = ["LD_LIBRARY_PATH=/env"]


@case
def musl_inherits(t):
    "musl: RUNPATH serves what its libraries need, too"
    musl(t).lib("a/liba.so", "libb.so", "libc.musl-x86_64.so.1").lib("b/libb.so").exe("p", "liba.so", interpreter=MUSL, runpath="/a:/b")


@case
def musl_itself(t):
    "musl: names of the C library, whatever the version, mean itself"
    musl(t).lib("a/libc.so.6").lib("a/libm.so").lib("a/libmy.so")
    t.exe("p", "libc.so.6", "libm.so", "libpthread.so.0", "libdl.so.2", "libmy.so", interpreter=MUSL, runpath="/a")


@case
def musl_path_file(t):
    "musl: etc/ld-musl-ARCH.path replaces its directories"
    musl(t).text("etc/ld-musl-x86_64.path", "/opt/one\n/opt/two:/lib\n").lib("opt/two/libx.so").lib("usr/lib/liby.so")
    t.exe("p", "libx.so", "liby.so", interpreter=MUSL)


@case
def musl_soname(t):
    "musl: a SONAME does not count, the name that was searched for does"
    musl(t).lib("a/libfile.so", soname="libname.so").exe("p", "libfile.so", "libname.so", interpreter=MUSL, runpath="/a")


@case
def musl_origin(t):
    "musl: $ORIGIN; with any other token the whole path is dropped"
    musl(t).lib("opt/lib/libx.so").exe("opt/p", "libx.so", interpreter=MUSL, runpath="$ORIGIN/lib")
    t.exe("opt/q", "libx.so", interpreter=MUSL, runpath="/opt/lib:/opt/$LIB")


# ---- as one OCI layout: an image per case, by tag -----------------------------------------------------------------------
def pack():
    top = OUT + "/oci"
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top + "/blobs/sha256")
    open(top + "/oci-layout", "w").write('{"imageLayoutVersion":"1.0.0"}')
    manifests = []

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        open(f"{top}/blobs/sha256/{digest}", "wb").write(data)
        return {"digest": "sha256:" + digest, "size": len(data)}

    for make in CASES:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:

            def plain(info):
                info.mtime = info.uid = info.gid = 0
                info.uname = info.gname = ""
                return info

            root = f"{OUT}/{make.__name__}/root"
            for name in sorted(os.listdir(root)):
                tar.add(f"{root}/{name}", arcname=name, filter=plain)
        layer = blob(buffer.getvalue())
        env = open(f"{OUT}/{make.__name__}/env").read().splitlines()
        config = {"architecture": "amd64", "os": "linux", "config": {"Env": env}, "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
        config = blob(json.dumps(config).encode())
        oci = "application/vnd.oci.image."
        manifest = {
            "schemaVersion": 2,
            "mediaType": oci + "manifest.v1+json",
            "config": {"mediaType": oci + "config.v1+json", **config},
            "layers": [{"mediaType": oci + "layer.v1.tar", **layer}],
        }
        row = {"mediaType": oci + "manifest.v1+json", **blob(json.dumps(manifest).encode())}
        manifests.append({**row, "annotations": {"org.opencontainers.image.ref.name": make.__name__}})
    open(top + "/index.json", "w").write(json.dumps({"schemaVersion": 2, "manifests": manifests}))


for make in CASES:
    tree = Tree(make.__name__)
    make(tree)
    open(tree.top + "/env", "w").write("".join(line + "\n" for line in tree.env))
    open(tree.top + "/says", "w").write(make.__doc__ + "\n")
pack()
shutil.rmtree(TMP)
print(len(CASES), "cases")
