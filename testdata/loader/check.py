#!/usr/bin/env python3
"""check.py IMAGELINT DIR [CASE...] [--write FILE]

For every ELF file of every case in DIR (made by make.sh): what the real loader takes for each name it needs, asked in a
chroot of the tree, against `libraries[].needs[]` of imagelint's report. Prints a table; --write keeps the real answers.

Where the real loader finds nothing for a file alone, imagelint may name the process that does find it ("RPATH of p",
"already loaded by p"): then the real loader, asked about that process, must load the same file."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from real import REFUSED, Loader, elfs

args = sys.argv[1:]
write = args.pop(args.index("--write") + 1) if "--write" in args else None
args = [a for a in args if a != "--write"]
imagelint, top, only = args[0], args[1], args[2:]


def ours(case):
    command = [imagelint, "scan", f"oci:{top}/oci:{case}", "--format", "json", "--no-cache"]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return {lib["path"]: {n["soname"]: (n.get("found"), n.get("why") or "") for n in lib["needs"]} for lib in report["libraries"]}


rows, bad, beyond, truth = 0, 0, 0, {}
for case in sorted(os.listdir(top)):
    root = f"{top}/{case}/root"
    if not os.path.isdir(root) or (only and case not in only):
        continue
    env = open(f"{top}/{case}/env").read().splitlines()
    musl = any(i and "musl" in i for *_, i in elfs(root))
    print(f"\n{case}: {open(f'{top}/{case}/says').read().strip()}")
    said = ours(case)
    with Loader(root, env, musl) as loader:
        everyone = {}
        answers, elsewhere = {}, {}
        for path, needed, _, _ in elfs(root):
            if needed:
                answers[path], maps, _, _ = loader.needs(path, needed)
                everyone[path] = maps
        for path, found in answers.items():
            for name, real in found.items():
                rows += 1
                got, why = said.get(path, {}).get(name, ("no row", ""))
                same = got == real if real != REFUSED else got is None and "/" in why
                mark = " "
                if not same and real is None and got:
                    # Another process: whoever it is must load that file under that name.
                    same = any(got in (maps.get(name), p, *maps.values()) for p, maps in everyone.items() if p != path)
                    beyond += same
                    mark = "+"
                    if same:
                        elsewhere.setdefault(path, {})[name] = got
                bad += not same
                print(f"{' ' if same else '!'}{mark} {path:24} {name:28} {str(real):36} {got or '-'}  ({why})")
        truth[case] = {"says": open(f"{top}/{case}/says").read().strip(), "needs": answers, "elsewhere": elsewhere}
if write:
    json.dump(truth, open(write, "w"), indent=1, sort_keys=True)
    open(write, "a").write("\n")
print(f"\n{len(truth)} cases, {rows} needs, {bad} differ, {beyond} found in another process")
sys.exit(bool(bad))
