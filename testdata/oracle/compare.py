#!/usr/bin/env python3
"""compare.py IMAGELINT CUOBJDUMP13 CUOBJDUMP12 FOLDER...

Compares, for every ELF file with device code under the folders, the multiset of (form, arch with suffix) that `imagelint inspect` and
`cuobjdump -all` (its header dump) list. Each difference needs one of the reasons in REASONS, checked by walk.py; anything else is
unexplained. Last line: "0 unexplained differences", or exit 1."""
import json
import os
import re
import subprocess
import sys
from collections import Counter

from walk import walk

REASONS = {
    "13.5-refuses": "cuobjdump 13.5 ends in an error on this file (removed sm_35, old sm_90 cubins); its 12.4 release reads it",
    "12.4-drops-f": "cuobjdump 12.4 does not know the suffix f and prints the bare number",
    "outside-sections": "in a section that cuobjdump does not read (.rodata, .lrodata, .ldata, .cask_resource …); walk.py finds the same",
    "raw-cubin": "a cubin without a fatbin around it, which cuobjdump does not list; walk.py finds the same",
    "ptx-text": "PTX kept as plain text, which cuobjdump does not list; walk.py finds the same",
    "profiler-stub": "instrumentation stubs of a profiler library, left out on purpose",
}
FORM = {"sass": "elf", "ptx": "ptx", "lto-ir": "nvvm", "tile-ir": "tileir"}
WORDS = {"tile ir": "tileir", "lto ir": "nvvm"}

imagelint, new, old, *folders = sys.argv[1:]


def bare(arch):
    return re.sub(r"^(sm|compute|lto)_", "", arch)


def ours(path):
    """Per container (fatbin, cubin, ptx-text): the multiset that imagelint lists; whether it tells of damage."""
    run = subprocess.run([imagelint, "inspect", "--format", "json", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode not in (0, 1):
        raise SystemExit(f"{path}: imagelint exit {run.returncode}: {run.stderr.decode(errors='replace')[:500]}")
    lists = {"fatbin": Counter(), "cubin": Counter(), "ptx-text": Counter()}
    for file in json.loads(run.stdout)["device_code"]:
        for a in file["archs"]:
            lists[a.get("container", "fatbin")][(FORM.get(a["form"], a["form"]), bare(a["arch"]))] += a["entries"]
    return lists


def headers(cuobjdump, path):
    """The header dump as a multiset, or the error."""
    run = subprocess.run([cuobjdump, "-all", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    seen, form, error = Counter(), None, None
    for line in run.stdout.splitlines():
        if m := re.match(r"Fatbin (.*) code", line):
            form = WORDS.get(m.group(1), m.group(1))
        elif form and (m := re.match(r"arch = (?:sm|compute|lto)_(\S+)", line)):
            seen[(form, m.group(1))] += 1
            form = None
        elif "fatal" in line and "does not contain device code" not in line:
            error = line.strip()
    return (None, error or f"exit {run.returncode}") if error or run.returncode not in (0, 255) else (seen, None)


def without_f(counter):
    out = Counter()
    for (form, arch), n in counter.items():
        out[(form, arch.rstrip("f"))] += n
    return out


def show(counter):
    return " ".join(f"{form}:{arch}x{n}" for (form, arch), n in sorted(counter.items())) or "nothing"


def judge(path, name):
    """(one row for the table, the unexplained differences)"""
    mine, second = ours(path), walk(path)
    reasons, unexplained = Counter(), []
    listed = Counter(mine["fatbin"])
    theirs, error = headers(new, path)
    if theirs is None:
        theirs, older = headers(old, path)
        if theirs is None:
            unexplained.append(f"neither cuobjdump reads it: {error}; {older}")
            theirs = Counter()
        reasons["13.5-refuses"] += 1
        if any(arch.endswith("f") for _, arch in listed) and listed != theirs:
            reasons["12.4-drops-f"] += sum(n for (_, arch), n in listed.items() if arch.endswith("f"))
            listed = without_f(listed)
            second["outside"] = without_f(second["outside"])
    # Everything cuobjdump lists must be in our list; what we have more must be what stands outside its sections.
    if missing := theirs - listed:
        unexplained.append(f"only cuobjdump: {show(missing)}")
    more = listed - theirs
    if more and more == second["outside"]:
        reasons["outside-sections"] += sum(more.values())
    elif more or second["outside"]:
        unexplained.append(f"only imagelint: {show(more - second['outside'])}; only walk.py: {show(second['outside'] - more)}")
    for container, kind, reason in (("cubin", "cubin", "raw-cubin"), ("ptx-text", "text", "ptx-text")):
        if mine[container] == second[kind]:
            if mine[container]:
                reasons[reason] += sum(mine[container].values())
        elif not mine[container] and re.match(r"lib(cupti|nvperf|pcsamplingutil|checkpoint)", os.path.basename(path)):
            reasons["profiler-stub"] += sum(second[kind].values())
        else:
            a, b = mine[container] - second[kind], second[kind] - mine[container]
            unexplained.append(f"{container}: only imagelint {show(a)}; only walk.py {show(b)}")
    why = ", ".join(f"{r} {n}" for r, n in sorted(reasons.items()))
    row = (name, sum(theirs.values()), sum(sum(c.values()) for c in mine.values()), why or "equal")
    return row, unexplained, reasons


def elves(folder):
    for base, _, files in sorted(os.walk(folder)):
        for f in sorted(files):
            path = os.path.join(base, f)
            if not os.path.islink(path) and os.path.getsize(path) > 64:
                with open(path, "rb") as h:
                    if h.read(4) == b"\x7fELF":
                        yield path


total, entries, used = 0, 0, Counter()
print(f"{'file':<72} {'cuobjdump':>9} {'imagelint':>9}  reasons")
for folder in folders:
    wheel = os.path.basename(os.path.normpath(folder))
    for path in elves(folder):
        second = walk(path)
        if not any(second[k] for k in ("listed", "outside", "cubin", "text")) and not any(ours(path).values()):
            continue
        row, unexplained, reasons = judge(path, f"{wheel}/{os.path.basename(path)}")
        print(f"{row[0]:<72} {row[1]:>9} {row[2]:>9}  {row[3]}", flush=True)
        for u in unexplained:
            print(f"    UNEXPLAINED {u}")
        total += len(unexplained)
        entries += row[2]
        used += Counter(reasons.keys())
print()
for r, n in sorted(used.items()):
    print(f"{r} ({n} files): {REASONS[r]}")
print(f"{entries} entries")
print(f"{total} unexplained differences")
sys.exit(total != 0)
