#!/usr/bin/env python3
"""check.py IMAGELINT sizes FOLDER                         bytes of device code, per architecture and per component
check.py IMAGELINT diff OLD.whl NEW.whl [CUOBJDUMP]     the architectures that differ between two wheels

Holds `scan --sizes` and `diff` against ../oracle/walk.py, a reading of the same bytes that shares nothing with imagelint, and the
second also against NVIDIA's cuobjdump where that is given. Prints what was compared; exit 1 on any difference."""
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
from walk import walk  # noqa: E402

FORM = {"sass": "elf", "ptx": "ptx", "lto-ir": "nvvm", "tile-ir": "tileir"}
WORDS = {"tile ir": "tileir", "lto ir": "nvvm"}
# Instrumentation stubs of profilers: their cubins are left out on purpose.
PROFILER = re.compile(r"lib(cupti|nvperf|pcsamplingutil|checkpoint)")


def imagelint(program, *args):
    run = subprocess.run([program, *args, "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if run.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(args)}: exit {run.returncode}: {run.stderr.decode(errors='replace')[:500]}")
    return json.loads(run.stdout)


def key(row):
    return FORM.get(row["form"], row["form"]), re.sub(r"^(sm|compute|lto)_", "", row["arch"])


def elves(folder):
    for base, _, files in sorted(os.walk(folder)):
        for name in sorted(files):
            path = os.path.join(base, name)
            if not os.path.islink(path) and os.path.getsize(path) > 64:
                with open(path, "rb") as h:
                    if h.read(4) == b"\x7fELF" or name.endswith((".a", ".o", ".fatbin", ".cubin")):
                        yield path


def told(word, mine, theirs):
    """Prints both where they differ; whether they do."""
    bad = False
    for k in sorted(mine.keys() | theirs.keys()):
        if mine[k] != theirs[k]:
            print(f"    DIFFERS {word} {k[0]}:{k[1]}: imagelint {mine[k]}, the other reading {theirs[k]}")
            bad = True
    return bad


def sizes(program, folder):
    report = imagelint(program, "scan", f"dir:{folder}", "--sizes", "--format", "json", "--allow-gaps")
    table, bad = report["sizes"], False
    theirs, mine, loose, total = Counter(), Counter(), Counter(), Counter()
    for path in elves(folder):
        theirs.update(walk(path)["bytes"])
    for file in report["device_code"]:
        for row in file["archs"]:
            total[key(row)] += row["bytes"]
            (mine if row["container"] == "fatbin" else loose)[key(row)] += row["bytes"]
    bad |= told("entries", mine, theirs)
    # The table is the sum of what is listed per file, by architecture, by component and as a whole.
    by_arch = Counter({key(row): row["bytes"] for row in table["archs"]})
    bad |= told("sizes.archs", by_arch, total)
    by_component = Counter()
    for component in table["components"]:
        one = sum(row["bytes"] for row in component["archs"])
        if one != component["bytes"]:
            print(f"    DIFFERS {component['name']}: {component['bytes']} is not the sum of its architectures, {one}")
            bad = True
        for row in component["archs"]:
            by_component[key(row)] += row["bytes"]
    bad |= told("sizes.components", by_component, total)
    if table["bytes"] != sum(total.values()):
        print(f"    DIFFERS sizes.bytes: {table['bytes']}, not {sum(total.values())}")
        bad = True
    print(f"{os.path.basename(folder)}: {sum(theirs.values())} bytes of entries in {len(theirs)} kinds, "
          f"{sum(loose.values())} bytes outside fatbins, {len(table['components'])} components")
    return bad


def headers(cuobjdump, path):
    """(form, arch) that cuobjdump's header dump lists."""
    run = subprocess.run([cuobjdump, "-all", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False)
    seen, form = set(), None
    for line in run.stdout.splitlines():
        if m := re.match(r"Fatbin (.*) code", line):
            form = WORDS.get(m.group(1), m.group(1))
        elif form and (m := re.match(r"arch = (?:sm|compute|lto)_(\S+)", line)):
            seen.add((form, m.group(1)))
            form = None
        elif "fatal" in line and "does not contain device code" not in line:
            raise SystemExit(f"{path}: cuobjdump: {line.strip()}")
    return seen


def archs_of(wheel, work, cuobjdump):
    """The loadable (form, arch) of a wheel by both readings, one library unpacked at a time."""
    by_walk, by_cuobjdump = set(), set()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = os.path.basename(member.filename)
            if not re.search(r"\.so(\.|$)", name) or PROFILER.match(name):
                continue
            path = os.path.join(work, "library.so")
            with archive.open(member) as source, open(path, "wb") as out:
                while block := source.read(1 << 20):
                    out.write(block)
            found = walk(path)
            by_walk.update(found["loadable"].keys() | found["cubin"].keys())
            if cuobjdump and found["listed"]:
                by_cuobjdump |= headers(cuobjdump, path)
            os.remove(path)
    return by_walk, by_cuobjdump


def diff(program, old, new, cuobjdump=None):
    report = imagelint(program, "diff", f"file:{old}", f"file:{new}", "--format", "json")
    lost = {key(a) for c in report["components"] for a in c["lost"]}
    won = {key(a) for c in report["components"] for a in c["won"]}
    with tempfile.TemporaryDirectory() as work:
        (before, before_cu), (after, after_cu) = archs_of(old, work, cuobjdump), archs_of(new, work, cuobjdump)
    show = lambda some: " ".join(f"{form}:{arch}" for form, arch in sorted(some)) or "none"
    bad = False
    readings = [("walk.py", before, after)] + ([("cuobjdump", before_cu, after_cu)] if cuobjdump else [])
    for name, before, after in readings:
        same = lost == before - after and won == after - before
        bad |= not same
        print(f"{name}: lost {show(before - after)}; won {show(after - before)}{'' if same else '  DIFFERS'}")
    print(f"imagelint: lost {show(lost)}; won {show(won)}")
    for c in report["components"]:
        for row in c["fewer"]:
            print(f"    {c['name']}: {row['arch']} in {row['old']} -> {row['new']} modules")
    return bad


program, what, *rest = sys.argv[1:]
failed = any([sizes(program, os.path.abspath(f)) for f in rest]) if what == "sizes" else diff(program, *rest)
print("FAILED" if failed else "equal")
sys.exit(failed)
