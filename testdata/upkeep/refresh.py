#!/usr/bin/env python3
"""Holds rows of rules/data against the real packages, and prints what differs.

    refresh.py toolkits [CUDA…]     ptxas of NVIDIA's nvcc wheels: targets and PTX ISA of each CUDA minor
    refresh.py wheels [VERSION…]    torch wheels of PyPI: CUDA, architecture list, pins

Without names it looks at what the tables do not have yet; with names at those, and `all` is every one. What is
printed is a patch of rows: lines with - stand in the table, lines with + are what the packages say. Nothing is
written: rows go in by hand, with a look at their notes. Exit 1 if anything differs.

Wheels are read by ranges: of a torch wheel of 0.5 GB about 30 MB. PIP_INDEX_URL names another index. Needs Python 3.11
and, for toolkits, Linux on x86_64 (ptxas is run)."""

import difflib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "rules" / "data"
CHUNK = 1 << 20


def index():
    """The index that pip would ask."""
    url = os.environ.get("PIP_INDEX_URL")
    if not url:
        told = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"],
                              capture_output=True, text=True)
        url = told.stdout.strip() or "https://pypi.org/simple"
    return url.rstrip("/") + "/"


def files(project):
    """Name and address of each wheel of a project."""
    url = index() + project + "/"
    request = urllib.request.Request(url, headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"})
    with urllib.request.urlopen(request) as answer:
        body = answer.read()
        kind = answer.headers.get_content_type()
        base = answer.geturl()
    if kind.endswith("+json"):
        found = [(f["filename"], f["url"], f.get("yanked", False)) for f in json.loads(body)["files"]]
    else:
        page = body.decode()
        found = [(m[2], m[1], "data-yanked" in m[0]) for m in
                 re.finditer(r'<a\s[^>]*href="([^"]+)"[^>]*>\s*([^<\s]+)\s*</a>', page)]
    return [(name, urllib.parse.urljoin(base, url).split("#")[0]) for name, url, yanked in found
            if name.endswith(".whl") and not yanked]


class Remote(io.RawIOBase):
    """A file on a server, read by ranges."""

    def __init__(self, url):
        self.url, self.at, self.kept = url, 0, {}
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Range": "bytes=0-0"})) as answer:
            if answer.status != 206:
                raise OSError(f"{url}: the server gives no ranges")
            self.size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def readinto(self, into):
        number, skip = divmod(self.at, CHUNK)
        if self.at >= self.size:
            return 0
        if number not in self.kept:
            last = min((number + 1) * CHUNK, self.size) - 1
            headers = {"Range": f"bytes={number * CHUNK}-{last}"}
            with urllib.request.urlopen(urllib.request.Request(self.url, headers=headers)) as answer:
                self.kept = {number: answer.read()}
        piece = self.kept[number][skip:skip + len(into)]
        if not piece:
            raise OSError(f"{self.url}: ends early")
        into[:len(piece)] = piece
        self.at += len(piece)
        return len(piece)


def numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version))


def rows(table, kind, key):
    """Rows of a table as they are typed, by what they are of."""
    text = (DATA / table).read_text()
    typed = re.split(r"(?m)^(?=\[\[)", text)
    typed = [row for row in typed if row.startswith(f"[[{kind}]]\n")]
    parsed = tomllib.loads(text)[kind]
    assert len(typed) == len(parsed)
    return {row[key]: [line for line in words.splitlines() if line and not line.startswith("#")]
            for row, words in zip(parsed, typed)}


def listed(values):
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def differ(name, old, new):
    """Of an old row only the keys that the new one has are compared: notes are a person's."""
    keys = {line.split(" = ")[0] for line in new}
    kept = [line for line in old if line.split(" = ")[0] in keys]
    patch = list(difflib.unified_diff(kept, new, "table", "packages", lineterm="", n=20))
    if patch:
        print(f"# {name}")
        print("\n".join(patch[2:]) + "\n")
    return bool(patch)


def toolkits(wanted):
    have = rows("toolkits.toml", "toolkit", "cuda")
    wheels = {}
    for project in ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc-cu11"):
        for name, url in files(project):
            if "x86_64" not in name:
                continue
            version = name.split("-")[1]
            minor = ".".join(version.split(".")[:2])
            wheels.setdefault(minor, {})[version] = url
    changed = False
    for minor in sorted(wheels, key=numbers, reverse=True):
        if not (minor in wanted or "all" in wanted or (not wanted and minor not in have)):
            continue
        version = max(wheels[minor], key=numbers)
        new = toolkit(minor, version, wheels[minor][version])
        changed |= differ(f"CUDA {minor}, ptxas {version}", have.get(minor, []), new)
    return changed


def toolkit(minor, version, url):
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BufferedReader(Remote(url), CHUNK)) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith("/bin/ptxas"))
            ptxas = Path(folder) / "ptxas"
            ptxas.write_bytes(wheel.read(name))
        ptxas.chmod(0o755)
        told = subprocess.run([ptxas, "--help"], capture_output=True, text=True).stdout
        names = told[told.index("--gpu-name"):]
        names = names[:names.index("Default value")]
        # 'compute_90','sm_90','sm_90a', … and within families 'sm_100f'.
        sm = sorted(set(re.findall(r"'sm_(\d+[af]?)'", names)), key=lambda n: (numbers(n), n))
        virtual = sorted(set(re.findall(r"'compute_(\d+[af]?)'", names)), key=lambda n: (numbers(n), n))
        source = Path(folder) / "x.ptx"
        source.write_text(".version 99.9\n.target sm_80\n")
        error = subprocess.run([ptxas, source, "-o", Path(folder) / "x"], capture_output=True, text=True).stderr
        isa = re.search(r"current version is '(\d+\.\d+)'", error)[1]
    plain = [n for n in sm if n.isdigit()]
    return ["[[toolkit]]", f'cuda = "{minor}"', f'ptx_isa = "{isa}"', f"sm = {listed(sm)}",
            f'first_sm = "{plain[0]}"', f'last_sm = "{plain[-1]}"', f"virtual = {listed(virtual)}"]


def wheels(wanted):
    have = rows("pytorch.toml", "default_wheel", "torch")
    found = {}
    # With a build number behind the version, the highest counts.
    for name, url in sorted(files("torch"), key=lambda f: numbers(f[0].partition("-cp")[0])):
        if "x86_64" in name and "-cp311-cp311-" in name and "manylinux" in name and "+" not in name:
            found[name.split("-")[1]] = (name, url)
    oldest = min(map(numbers, have))
    changed = False
    for version in sorted(found, key=numbers, reverse=True):
        new = version not in have and numbers(version) > oldest
        if version in wanted or "all" in wanted or (not wanted and new):
            changed |= differ(f"torch {version}", have.get(version, []), wheel(version, *found[version]))
    return changed


def wheel(version, name, url):
    remote = Remote(url)
    with zipfile.ZipFile(io.BufferedReader(remote, CHUNK)) as archive:
        about = archive.read("torch/version.py").decode()
        metadata = archive.read(f"torch-{version}.dist-info/METADATA").decode()
        library = archive.read("torch/lib/libtorch_python.so")
    cuda = re.search(r"cuda: Optional\[str\] = '([\d.]+)'|cuda = '([\d.]+)'", about)
    cuda = cuda[1] or cuda[2]
    # What torch.cuda.get_arch_list() splits at blanks.
    flags = max(re.findall(rb"(?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)+", library), key=len, default=None)
    pins = dict(re.findall(r"(?m)^Requires-Dist: ([\w-]+?)(?:-cu\d+)?(?:\[[^\]]*\])? ?\(?==([\w.]+)", metadata))
    out = ["[[default_wheel]]", f'torch = "{version}"', f'variant = "cu{cuda.replace(".", "")}"', f'cuda = "{cuda}"',
           f"archs = {listed(flags.decode().split())}" if flags else "# no list of architectures was found"]
    for key, package in (("cudnn", "nvidia-cudnn"), ("nccl", "nvidia-nccl"), ("triton", "triton")):
        if package in pins:
            out.append(f'{key} = "{pins[package]}"')
    return out + [f'wheel = "{name}"', f"bytes = {remote.size}"]


def main():
    tables = {"toolkits": toolkits, "wheels": wheels}
    if len(sys.argv) < 2 or sys.argv[1] not in tables:
        sys.exit(__doc__)
    changed = tables[sys.argv[1]](set(sys.argv[2:]))
    if not changed:
        print("the table says what the packages say")
    sys.exit(changed)


main()
