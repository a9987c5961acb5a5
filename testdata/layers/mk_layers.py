#!/usr/bin/env python3
"""Hand-makes OCI layouts for cases daemon-less tools cannot produce (hostile tar, eStargz, attestation
index, Docker>=25 `docker save` layout, odd compressions). No third-party modules. Usage: mk_layers.py OUT ELF
Each case is OUT/handmade/NAME (an OCI layout dir, tag 'latest'); expect.json says what a scanner must see."""

import sys
import os
import io
import random
import tarfile
import gzip
import zlib
import json
import hashlib
import subprocess
import struct
import shutil

OUT, ELF = sys.argv[1:3]
elf = open(ELF, "rb").read()
exp = {}
sha = lambda b: "sha256:" + hashlib.sha256(b).hexdigest()
M = "application/vnd.oci.image.manifest.v1+json"
I = "application/vnd.oci.image.index.v1+json"
C = "application/vnd.oci.image.config.v1+json"
L = {
    "": "application/vnd.oci.image.layer.v1.tar",
    "gz": "application/vnd.oci.image.layer.v1.tar+gzip",
    "zst": "application/vnd.oci.image.layer.v1.tar+zstd",
}
D2 = {
    "m": "application/vnd.docker.distribution.manifest.v2+json",
    "c": "application/vnd.docker.container.image.v1+json",
    "l": "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "list": "application/vnd.docker.distribution.manifest.list.v2+json",
}


def gz(b):
    return gzip.compress(b, 6, mtime=0)


def zst(b, *a):
    return subprocess.run(["zstd", "-q", "-c", *a], input=b, stdout=subprocess.PIPE, check=True).stdout


class T:
    def __init__(s, fmt=tarfile.PAX_FORMAT):
        s.b = io.BytesIO()
        s.t = tarfile.open(fileobj=s.b, mode="w", format=fmt)

    def f(s, n, data=b"x", mode=0o755, pax=None, typ=tarfile.REGTYPE, link=""):
        ti = tarfile.TarInfo(n)
        ti.size = len(data) if typ == tarfile.REGTYPE else 0
        ti.mode = mode
        ti.type = typ
        ti.linkname = link
        if pax:
            ti.pax_headers = pax
        s.t.addfile(ti, io.BytesIO(data) if ti.size else None)
        return s

    def d(s, n):
        return s.f(n, typ=tarfile.DIRTYPE)

    def sl(s, n, l):
        return s.f(n, typ=tarfile.SYMTYPE, link=l)

    def hl(s, n, l):
        return s.f(n, typ=tarfile.LNKTYPE, link=l)

    def raw(s, b):
        s.b.write(b)
        s.t.offset += len(b)
        return s

    def done(s):
        s.t.close()
        return s.b.getvalue()


class Lay:
    def __init__(s, name):
        s.p = f"{OUT}/handmade/{name}"
        shutil.rmtree(s.p, ignore_errors=True)
        os.makedirs(s.p + "/blobs/sha256")
        open(s.p + "/oci-layout", "w").write('{"imageLayoutVersion":"1.0.0"}')
        s.top = []

    def blob(s, b):
        d = sha(b)
        open(f"{s.p}/blobs/sha256/{d[7:]}", "wb").write(b)
        return d

    def man(s, layers, arch="amd64", v2=False, subject=None, at=None, layerann=None, os_="linux"):
        cfg = json.dumps(
            {
                "architecture": arch,
                "os": os_,
                "config": {"Env": ["PATH=/usr/bin"], "Labels": {"x": "y"}},
                "rootfs": {"type": "layers", "diff_ids": [sha(u) for u, _, _ in layers]},
                "history": [{"created_by": f"layer {i}"} for i in range(len(layers))],
            }
        ).encode()
        lds = []
        for i, (u, c, mt) in enumerate(layers):
            d = {"mediaType": mt, "digest": s.blob(c), "size": len(c)}
            if layerann and i in layerann:
                d["annotations"] = layerann[i]
            lds.append(d)
        m = {
            "schemaVersion": 2,
            "mediaType": D2["m"] if v2 else M,
            "config": {"mediaType": D2["c"] if v2 else C, "digest": s.blob(cfg), "size": len(cfg)},
            "layers": lds,
        }
        if subject:
            m["subject"] = subject
        if at:
            m["artifactType"] = at
        b = json.dumps(m).encode()
        return {"mediaType": m["mediaType"], "digest": s.blob(b), "size": len(b)}

    def idx(s, ms, v2=False, **k):
        b = json.dumps({"schemaVersion": 2, "mediaType": D2["list"] if v2 else I, "manifests": ms, **k}).encode()
        return {"mediaType": D2["list"] if v2 else I, "digest": s.blob(b), "size": len(b)}

    def fin(s, *descs, tag="latest"):
        for d in descs:
            d = dict(d)
            d.setdefault("annotations", {})["org.opencontainers.image.ref.name"] = tag
            s.top.append(d)
        open(s.p + "/index.json", "w").write(json.dumps({"schemaVersion": 2, "manifests": s.top}))


def G(u):
    return (u, gz(u), L["gz"])


def simple(name, *layers, expect=None, **k):
    l = Lay(name)
    l.fin(l.man(list(layers), **k))
    exp[name] = expect


base = T().d("opt").f("opt/libgpu.so", elf).f("opt/readme", b"hi").done()
# --- compressions
simple("c-none", (base, base, L[""]), expect={"elf": ["/opt/libgpu.so"]})
simple("c-gzip", G(base), expect={"elf": ["/opt/libgpu.so"]})
simple("c-zstd", (base, zst(base), L["zst"]), expect={"elf": ["/opt/libgpu.so"]})
simple(
    "c-zstd-multiframe-skippable",
    (base, zst(base[:1024]) + b"\x50\x2a\x4d\x18\x04\0\0\0skip" + zst(base[1024:]), L["zst"]),
    expect={"elf": ["/opt/libgpu.so"]},
)
simple(
    "c-zstd-window-128m", (base, zst(base, "--ultra", "-22", "--long=27"), L["zst"]), expect={"elf": ["/opt/libgpu.so"]}
)
simple("c-gzip-multimember", (base, gz(base[:700]) + gz(base[700:]), L["gz"]), expect={"elf": ["/opt/libgpu.so"]})
simple(
    "c-gzip-labelled-tar",
    (base, gz(base), L[""]),
    expect={"elf": ["/opt/libgpu.so"], "note": "mediaType lies; sniff magic"},
)
simple(
    "c-zstd-labelled-gzip",
    (base, zst(base), L["gz"]),
    expect={"elf": ["/opt/libgpu.so"], "note": "mediaType lies; sniff magic"},
)
simple("c-v2s2", (base, gz(base), D2["l"]), v2=True, expect={"elf": ["/opt/libgpu.so"]})
simple(
    "c-foreign-layer",
    G(base),
    (base, gz(base), "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"),
    expect={"elf": ["/opt/libgpu.so"]},
)
simple(
    "c-unknown-mediatype",
    (base, gz(base), "application/vnd.example.layer.v9+weird"),
    expect={"error": "unsupported layer media type, named, exit 2 (never silent pass)"},
)
simple("c-encrypted", (base, random.Random(500).randbytes(500), L["gz"] + "+encrypted"), expect={"error": "encrypted layer, named"})
# --- union semantics
l2 = lambda t: G(t.done())
simple("u-whiteout", G(base), l2(T().f("opt/.wh.libgpu.so", b"")), expect={"elf": [], "shadowed": ["/opt/libgpu.so"]})
simple(
    "u-opaque",
    G(base),
    l2(T().d("opt").f("opt/.wh..wh..opq", b"").f("opt/new.so", elf)),
    expect={"elf": ["/opt/new.so"]},
)
simple(
    "u-opaque-after-sibling",
    G(base),
    l2(T().d("opt").f("opt/new.so", elf).f("opt/.wh..wh..opq", b"")),
    expect={"elf": ["/opt/new.so"], "note": "opaque applies to LOWER layers only, regardless of order in the tar"},
)
simple(
    "u-whiteout-same-layer",
    G(base),
    l2(T().f("opt/libgpu.so", elf).f("opt/.wh.libgpu.so", b"")),
    expect={
        "elf": ["/opt/libgpu.so"],
        "note": "whiteout must not hide same-layer entry (spec); containerd/umoci agree",
    },
)
simple("u-whiteout-dir", G(base), l2(T().f(".wh.opt", b"")), expect={"elf": []})
simple("u-dir-replaced-by-file", G(base), l2(T().f("opt", b"file")), expect={"elf": []})
simple(
    "u-dir-replaced-by-symlink",
    G(base),
    l2(T().d("data").f("data/b.so", elf).sl("opt", "data")),
    expect={"elf": ["/data/b.so"], "note": "children of replaced dir vanish"},
)
simple("u-hardlink-same", l2(T().f("a.so", elf).hl("b.so", "a.so")), expect={"elf": ["/a.so", "/b.so"], "dedupe": 1})
simple(
    "u-hardlink-cross",
    G(base),
    l2(T().hl("opt/copy.so", "opt/libgpu.so").f("opt/.wh.libgpu.so", b"")),
    expect={"elf": ["/opt/copy.so"], "note": "link target lives in a lower layer"},
)
simple(
    "u-symlink-chain",
    l2(T().f("r/libx.so.1.2", elf).sl("r/libx.so.1", "libx.so.1.2").sl("r/libx.so", "libx.so.1")),
    expect={"elf": ["/r/libx.so.1.2"]},
)
simple(
    "u-through-symlink-dir",
    l2(T().d("usr").d("usr/lib").sl("lib", "usr/lib")),
    l2(T().f("lib/z.so", elf)),
    expect={"elf": ["/usr/lib/z.so"], "note": "usrmerge: entry under a symlinked dir lands in target"},
)
simple("u-dup-entry", l2(T().f("d.so", b"notelf").f("d.so", elf)), expect={"elf": ["/d.so"], "note": "last wins"})
simple(
    "u-dotslash-abs",
    l2(T().f("./p/a.so", elf).f("/p/b.so", elf).f("p//c.so", elf)),
    expect={"elf": ["/p/a.so", "/p/b.so", "/p/c.so"]},
)
simple(
    "u-same-blob-twice",
    G(base),
    G(base),
    expect={"elf": ["/opt/libgpu.so"], "note": "same digest twice; history/diff_ids 2"},
)
simple("u-empty-layer", G(base), G(T().done()), expect={"elf": ["/opt/libgpu.so"]})
# --- tar dialects
long = "n/" + "/".join(["d" * 90] * 4) + "/lib" + "x" * 120 + ".so"
simple("t-pax-long", l2(T().f(long, elf)), expect={"elf": ["/" + long]})
simple("t-gnu-long", l2(T(tarfile.GNU_FORMAT).f(long, elf).sl("ln", "t/" * 120)), expect={"elf": ["/" + long]})
simple(
    "t-ustar-prefix",
    l2(T(tarfile.USTAR_FORMAT).f("p/" + "q" * 100 + "/" + "r" * 80 + ".so", elf)),
    expect={"elf": ["/p/" + "q" * 100 + "/" + "r" * 80 + ".so"]},
)
simple("t-utf8", l2(T().f("uni/日本語-é.so", elf)), expect={"elf": ["/uni/日本語-é.so"]})


def rawh(name, size=0, typ=b"0", link=b"", sizefield=None, prefix=b""):
    h = bytearray(512)
    h[0 : len(name)] = name
    h[100:108] = b"0000755\0"
    h[108:116] = h[116:124] = b"0000000\0"
    h[124:136] = sizefield or (b"%011o\0" % size)
    h[136:148] = b"00000000000\0"
    h[156:157] = typ
    h[157 : 157 + len(link)] = link
    h[257:265] = b"ustar\x0000"
    h[345 : 345 + len(prefix)] = prefix
    h[148:156] = b" " * 8
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h)


pad = lambda b: b + b"\0" * (-len(b) % 512)
end = b"\0" * 1024
simple(
    "t-nonutf8",
    G(rawh(b"bad/\xff\xfe.so", len(elf)) + pad(elf) + end),
    expect={"elf": ["/bad/\\xff\\xfe.so"], "note": "non-UTF-8 path must survive to JSON/SARIF"},
)


def v7(name, size):
    h = rawh(name, size)[:257] + b"\0" * 255
    h = h[:148] + b" " * 8 + h[156:]
    return h[:148] + b"%06o\0 " % sum(h) + h[156:]


simple("t-v7-noustar", G(v7(b"old.so", len(elf)) + pad(elf) + end), expect={"elf": ["/old.so"]})
simple(
    "t-base256-size",
    G(rawh(b"b256.so", sizefield=b"\x80" + len(elf).to_bytes(11, "big")) + pad(elf) + end),
    expect={"elf": ["/b256.so"]},
)
simple("t-no-eof-blocks", G(rawh(b"noeof.so", len(elf)) + pad(elf)), expect={"elf": ["/noeof.so"]})
simple(
    "t-trailing-garbage",
    G(base + b"GARBAGE" * 100),
    expect={"elf": ["/opt/libgpu.so"], "note": "bytes after EOF blocks are ignored but must be hashed for diff_id"},
)
simple(
    "t-global-pax",
    l2(T().raw(rawh(b"pax_global_header", 20, b"g") + pad(b"20 comment=abcdefgh\n")).f("g.so", elf)),
    expect={"elf": ["/g.so"]},
)


def paxrec(k, v):
    b = k + b"=" + v + b"\n"
    n = len(b) + 1
    while True:
        s = b"%d " % (n)
        if len(s) + len(b) == n:
            return s + b
        n = len(s) + len(b)


xa = (
    T()
    .f("xa.so", elf, pax={"SCHILY.xattr.user.t": "1", "SCHILY.xattr.security.capability": "\x01"})
    .f("ovl", b"", pax={"SCHILY.xattr.trusted.overlay.opaque": "y"})
)
simple("t-xattr", l2(xa), expect={"elf": ["/xa.so"], "note": "overlay xattrs inside a layer must not be honoured"})
# sparse: GNU old ('S') and PAX 1.0, made with GNU tar
os.makedirs(OUT + "/tmp/sp", exist_ok=True)
with open(OUT + "/tmp/sp/s.so", "wb") as f:
    f.write(elf)
    f.seek(8 << 20)
    f.write(b"end")
for nm, a in (
    ("t-sparse-gnu", ["--format=gnu"]),
    ("t-sparse-pax10", ["--format=posix", "--sparse-version=1.0"]),
    ("t-sparse-pax00", ["--format=posix", "--sparse-version=0.0"]),
):
    t = subprocess.run(
        ["tar", "-S", *a, "-C", OUT + "/tmp/sp", "-cf", "-", "s.so"], stdout=subprocess.PIPE, check=True
    ).stdout
    simple(
        nm,
        G(t),
        expect={
            "elf": ["/s.so"],
            "note": "8 MiB logical, few KiB stored; PAX 1.0 stores name as GNUSparseFile.0/s.so + GNU.sparse.name",
        },
    )
# special files
ti = T()
for n, ty in (("dev/null", tarfile.CHRTYPE), ("fifo", tarfile.FIFOTYPE), ("blk", tarfile.BLKTYPE)):
    ti.f(n, typ=ty)
simple("t-devices", l2(ti.f("ok.so", elf)), expect={"elf": ["/ok.so"], "note": "never open/create devices"})
# --- hostile
simple(
    "h-traversal",
    l2(T().f("../../../../tmp/imagelint-pwned", b"x").f("a/../../b.so", elf).f("ok.so", elf)),
    expect={"elf": ["/ok.so", "/b.so"], "warn": "path escapes root; clamp to root, never write"},
)
simple(
    "h-symlink-escape",
    l2(T().sl("esc", "/etc").f("esc/pw.so", elf).sl("up", "../../..").f("up/u.so", elf)),
    expect={"elf": ["/etc/pw.so", "/u.so"]},
)
simple(
    "h-symlink-loop",
    l2(T().sl("l1", "l2").sl("l2", "l1").f("l1/x.so", elf).sl("self", "self")),
    expect={"warn": "loop; bounded resolution (40)"},
)
simple(
    "h-hardlink-escape",
    l2(T().hl("pw", "../../../etc/passwd").hl("abs", "/etc/shadow")),
    expect={"warn": "dangling hardlink"},
)
simple("h-hardlink-cycle", l2(T().hl("x", "y").hl("y", "x")), expect={"warn": "hardlink cycle"})
simple(
    "h-whiteout-weird",
    G(base),
    l2(T().f(".wh.", b"").f(".wh..", b"").f(".wh...", b"").f("opt/.wh..wh.plnk", b"")),
    expect={"elf": ["/opt/libgpu.so"], "warn": "bare .wh. / .wh... must not delete / or .."},
)
simple("h-neg-size", G(rawh(b"neg.so", sizefield=b"\xff" * 12) + end), expect={"error": "negative size"})
simple(
    "h-huge-size",
    G(rawh(b"big.so", sizefield=b"\x80" + (1 << 62).to_bytes(11, "big")) + pad(elf) + end),
    expect={"error": "truncated: declared 4 EiB"},
)
simple(
    "h-huge-size-octal",
    G(rawh(b"big.so", sizefield=b"77777777777\0") + pad(elf) + end),
    expect={"error": "truncated: declared 8 GiB"},
)
simple(
    "h-pax-size-override",
    G(
        rawh(b"PaxHeader", len(paxrec(b"size", b"18446744073709551615")), b"x")
        + pad(paxrec(b"size", b"18446744073709551615"))
        + rawh(b"p.so", len(elf))
        + pad(elf)
        + end
    ),
    expect={"error": "PAX size overflow"},
)
simple(
    "h-pax-size-smuggle",
    G(
        (lambda inner, r: rawh(b"PaxHeader", len(r), b"x") + pad(r) + rawh(b"outer.bin", 0) + pad(inner) + end)(
            rawh(b"hidden.so", len(elf)) + pad(elf),
            paxrec(b"size", str(len(pad(rawh(b"hidden.so", len(elf)) + pad(elf)))).encode()),
        )
    ),
    expect={
        "elf": [],
        "note": "PAX size must win over ustar 0 size (tar-rs RUSTSEC / TARmageddon class): hidden.so is data, not an entry",
    },
)
# GHSA-3cv2-h65g-fgmm class: PAX size record must apply to the next FILE, not to an intermediate GNU 'L' header
n_ = 1024 + len(pad(elf))
r_ = paxrec(b"size", str(n_).encode())
simple(
    "h-pax-desync-L",
    G(
        rawh(b"PaxHeader", len(r_), b"x")
        + pad(r_)
        + rawh(b"././@LongLink", 13, b"L")
        + pad(b"longname.txt\0")
        + rawh(b"a", 16)
        + pad(b"A" * 16)
        + rawh(b"hidden.so", len(elf))
        + pad(elf)
        + end
    ),
    expect={
        "note": "entry must be longname.txt with the PAX size; hidden.so header is swallowed as its data, as Go archive/tar and GNU tar do"
    },
)
big = paxrec(b"comment", b"A" * (64 << 20))
simple(
    "h-huge-pax",
    G(rawh(b"PaxHeader", len(big), b"x") + pad(big) + rawh(b"hp.so", len(elf)) + pad(elf) + end),
    expect={"error_or_elf": "64 MiB PAX header: cap (1 MiB) and report, no 64 MiB alloc"},
)
simple(
    "h-gnu-longname-bomb",
    G(rawh(b"././@LongLink", 1 << 26, b"L") + b"a" * (1 << 26) + rawh(b"x", 0) + end),
    expect={"error": "GNU longname over cap"},
)
simple(
    "h-many-entries",
    G(b"".join(rawh(b"e/%d" % i) for i in range(200000)) + end),
    expect={"elf": [], "note": "200k entries, 100 MB tar -> <1 MB gz"},
)
simple(
    "h-deep-path",
    l2(T().f("/".join(["d"] * 2000) + "/x.so", elf)),
    expect={"elf_count": 1, "note": "2000 deep; no recursion"},
)
simple(
    "h-ctrl-chars",
    l2(T().f("a\x1b[31mred\x07\n::error::pwn.so", elf)),
    expect={
        "elf_count": 1,
        "note": "ANSI escapes / newline / ::workflow-command:: injection in path must be escaped in every output",
    },
)


z = io.BytesIO()
co = zlib.compressobj(9, zlib.DEFLATED, 31)
zero = b"\0" * (1 << 20)
hh = hashlib.sha256()
N = 1 << 30
u = rawh(b"bomb.bin", N)
z.write(co.compress(u))
hh.update(u)
for _ in range(N >> 20):
    z.write(co.compress(zero))
    hh.update(zero)
z.write(co.compress(end))
hh.update(end)
z.write(co.flush())


class U(bytes):
    pass


l = Lay("h-gzip-bomb-1g")
_sha = sha
bombd = "sha256:" + hh.hexdigest()
marker = U(b"bomb")
sha = lambda b: bombd if b is marker else _sha(b)
l.fin(l.man([(marker, z.getvalue(), L["gz"])]))
sha = _sha
exp["h-gzip-bomb-1g"] = {"limit": "1 MiB -> 1 GiB; ratio/size cap"}
simple("h-trunc-gzip", (base, gz(base)[:-200], L["gz"]), expect={"error": "truncated gzip"})
simple(
    "h-badcrc-gzip", (base, gz(base)[:-8] + b"\0" * 8, L["gz"]), expect={"error": "crc mismatch or diff_id mismatch"}
)
# digest / size lies
l = Lay("h-digest-mismatch")
d = l.man([G(base)])
[open(f"{l.p}/blobs/sha256/{n}", "wb").write(gz(base + b"\0" * 512)) for n in [sha(gz(base))[7:]]]
l.fin(d)
exp["h-digest-mismatch"] = {"error": "blob digest mismatch"}
l = Lay("h-diffid-mismatch")
d = l.man([(b"other", gz(base), L["gz"])])
l.fin(d)
exp["h-diffid-mismatch"] = {"warn": "diff_id mismatch"}
l = Lay("h-missing-blob")
d = l.man([G(base)])
os.remove(f"{l.p}/blobs/sha256/{sha(gz(base))[7:]}")
l.fin(d)
exp["h-missing-blob"] = {"error": "missing blob"}
l = Lay("h-digest-path")
d = l.man([G(base)])
d["digest"] = "sha256:../../../../etc/passwd"
l.fin(d)
exp["h-digest-path"] = {"error": "invalid digest syntax"}
l = Lay("h-index-cycle")
b = json.dumps(
    {"schemaVersion": 2, "mediaType": I, "manifests": [{"mediaType": I, "digest": "sha256:" + "0" * 64, "size": 1}]}
).encode()
open(f"{l.p}/blobs/sha256/" + "0" * 64, "wb").write(b)
l.fin({"mediaType": I, "digest": "sha256:" + "0" * 64, "size": len(b)})
exp["h-index-cycle"] = {"error": "digest mismatch / nesting depth"}
# --- index shapes
l = Lay("i-multiarch-attest")
ms = []
for a, v in (("amd64", None), ("arm64", "v8")):
    m = l.man([G(T().f(f"{a}.so", elf).done())], arch=a)
    m["platform"] = {"architecture": a, "os": "linux", **({"variant": v} if v else {})}
    ms.append(m)
st = b'{"_type":"https://in-toto.io/Statement/v0.1"}'
for m in list(ms):
    cfg = b'{"architecture":"unknown","os":"unknown"}'
    am = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": M,
            "config": {"mediaType": C, "digest": l.blob(cfg), "size": len(cfg)},
            "layers": [
                {
                    "mediaType": "application/vnd.in-toto+json",
                    "digest": l.blob(st),
                    "size": len(st),
                    "annotations": {"in-toto.io/predicate-type": "https://spdx.dev/Document"},
                }
            ],
        }
    ).encode()
    ms.append(
        {
            "mediaType": M,
            "digest": l.blob(am),
            "size": len(am),
            "platform": {"architecture": "unknown", "os": "unknown"},
            "annotations": {
                "vnd.docker.reference.digest": m["digest"],
                "vnd.docker.reference.type": "attestation-manifest",
            },
        }
    )
l.fin(l.idx(ms))
exp["i-multiarch-attest"] = {
    "platforms": ["linux/amd64", "linux/arm64/v8"],
    "elf": {"linux/amd64": ["/amd64.so"], "linux/arm64": ["/arm64.so"]},
}
l = Lay("i-nested-index")
l.fin(
    l.idx([l.idx(ms and [(lambda m: {**m, "platform": {"architecture": "amd64", "os": "linux"}})(l.man([G(base)]))])])
)
exp["i-nested-index"] = {"elf": ["/opt/libgpu.so"], "note": "index->index->manifest"}
l = Lay("i-no-platform")
l.fin(l.man([G(base)], arch="amd64"), l.man([G(T().f("arm.so", elf).done())], arch="arm64"))
exp["i-no-platform"] = {"note": "two bare manifests, same tag; platform only in config"}
l = Lay("i-buildx-cache")
b = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": I,
        "manifests": [
            {"mediaType": L["gz"], "digest": l.blob(gz(base)), "size": len(gz(base))},
            {"mediaType": "application/vnd.buildkit.cacheconfig.v0", "digest": l.blob(b"{}"), "size": 2},
        ],
    }
).encode()
l.fin({"mediaType": I, "digest": l.blob(b), "size": len(b)})
exp["i-buildx-cache"] = {"error": "build cache, not an image"}
l = Lay("i-artifact")
e = b"{}"
m = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": M,
        "artifactType": "application/vnd.example",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": l.blob(e), "size": 2},
        "layers": [{"mediaType": "text/plain", "digest": l.blob(b"hello"), "size": 5}],
    }
).encode()
l.fin({"mediaType": M, "digest": l.blob(m), "size": len(m)})
exp["i-artifact"] = {"error": "not a container image (artifact)"}
l = Lay("i-embedded-data")
d = l.man([G(base)])
l.fin(d)
exp["i-embedded-data"] = {"elf": ["/opt/libgpu.so"]}
# Docker >= 25 `docker save` layout: blobs/ + index.json + oci-layout + manifest.json (+repositories), layers uncompressed tar
l = Lay("docker25-save")
d = l.man([(base, base, L[""])])
d.setdefault("annotations", {}).update(
    {"io.containerd.image.name": "docker.io/library/t:1", "org.opencontainers.image.ref.name": "1"}
)
l.fin(d, tag="1")
mm = json.load(open(f"{l.p}/blobs/sha256/{d['digest'][7:]}"))
json.dump(
    [
        {
            "Config": "blobs/sha256/" + mm["config"]["digest"][7:],
            "RepoTags": ["t:1"],
            "Layers": ["blobs/sha256/" + x["digest"][7:] for x in mm["layers"]],
            "LayerSources": {x["digest"]: x for x in mm["layers"]},
        }
    ],
    open(l.p + "/manifest.json", "w"),
)
subprocess.run(["tar", "-C", l.p, "-cf", OUT + "/docker25-save.tar", "."], check=True)
exp["docker25-save"] = {"elf": ["/opt/libgpu.so"]}
# legacy docker save (<25): <id>/layer.tar with symlinked duplicate layer, manifest.json
os.makedirs(OUT + "/tmp/leg", exist_ok=True)
t = T()
cfg = json.dumps(
    {"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [sha(base)] * 2}}
).encode()
cn = sha(cfg)[7:] + ".json"
t.f("aaa/VERSION", b"1.0").f("aaa/json", b"{}").f("aaa/layer.tar", base).sl("bbb/layer.tar", "../aaa/layer.tar").f(
    cn, cfg
).f(
    "manifest.json",
    json.dumps([{"Config": cn, "RepoTags": ["t:1"], "Layers": ["aaa/layer.tar", "bbb/layer.tar"]}]).encode(),
).f(
    "repositories", b"{}"
)
open(OUT + "/docker-legacy-save.tar", "wb").write(t.done())
exp["docker-legacy-save"] = {"elf": ["/opt/libgpu.so"], "note": "second layer is a symlink inside the archive"}
# Kaniko-style tar: layers are gz, manifest.json lists sha256-...tar.gz, no oci-layout
t = T()
t.f(sha(cfg), cfg).f(sha(gz(base))[7:] + ".tar.gz", gz(base)).f(
    "manifest.json",
    json.dumps([{"Config": sha(cfg), "RepoTags": ["t:1"], "Layers": [sha(gz(base))[7:] + ".tar.gz"] * 2}]).encode(),
)
open(OUT + "/kaniko.tar", "wb").write(t.done())
exp["kaniko.tar"] = {"elf": ["/opt/libgpu.so"], "note": "config named sha256:..., gz layers"}
open(OUT + "/docker25-save.tar.gz", "wb").write(gz(open(OUT + "/docker25-save.tar", "rb").read()))
exp["docker25-save.tar.gz"] = {"elf": ["/opt/libgpu.so"], "note": "outer gzip"}
# --- eStargz (hand-made: every header+chunk its own gzip member, TOC entry, 51-byte footer)


def estargz(files):
    out = b""
    toc = []
    tarb = b""
    for n, data in files:
        h = rawh(n.encode(), len(data))
        m = gz(h)
        out += m
        off = len(out)
        p = gz(pad(data)) if data else b""
        e = {
            "name": n,
            "type": "reg",
            "size": len(data),
            "mode": 0o755,
            "offset": off,
            "digest": sha(data),
            "chunkDigest": sha(data),
        }
        toc.append(e)
        out += p
        tarb += h + pad(data)
    tj = json.dumps({"version": 1, "entries": toc}).encode()
    h = rawh(b"stargz.index.json", len(tj))
    tocoff = len(out)
    out += gz(h + pad(tj) + end)
    tarb += h + pad(tj) + end
    ex = b"SG" + struct.pack("<H", 22) + b"%016xSTARGZ" % tocoff
    foot = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff" + struct.pack("<H", len(ex)) + ex + b"\x01\0\0\xff\xff" + b"\0" * 8
    assert len(foot) == 51
    return tarb, out + foot, sha(tj)


tb, blob, td = estargz(
    [(".no.prefetch.landmark", b"\x0f"), ("opt/libgpu.so", elf), ("opt/big.bin", random.Random(20).randbytes(1 << 20))]
)
simple(
    "z-estargz",
    (tb, blob, L["gz"]),
    layerann={0: {"containerd.io/snapshot/stargz/toc.digest": td}},
    expect={"elf": ["/opt/libgpu.so"], "note": "TOC at tail; range-readable"},
)
json.dump(exp, open(OUT + "/expect.json", "w"), indent=1)
print(len(exp), "cases")
