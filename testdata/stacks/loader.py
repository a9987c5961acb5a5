#!/usr/bin/env python3
"""loader.py EVIDENCE-DIR [STACK...]

Compares what a saved scan says the loader takes for each DT_NEEDED with what glibc's own loader listed in the image
(STACK.ld.gz, written by CHROOT=1 run.sh). Differences are printed, the last line counts. The loader was started from each library
as if it were a program, so only names that the library itself asks for are compared."""
import gzip
import json
import os
import re
import sys

folder, stacks = sys.argv[1], sys.argv[2:]
stacks = stacks or sorted(n[:-len(".ld.gz")] for n in os.listdir(folder) if n.endswith(".ld.gz"))
passed = failed = 0
for stack in stacks:
    try:
        with gzip.open(os.path.join(folder, stack + ".json.gz")) as f:
            evidence = json.load(f)
        with gzip.open(os.path.join(folder, stack + ".ld.gz"), "rt", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError as e:
        print(f"{stack}: {e.strerror}, skipped")
        continue
    links = dict(evidence["links"])
    listed = {}
    for line in lines:
        if m := re.match(r"(\S+): (\S+) => (.*)$", line):
            listed.setdefault(m[1], {})[m[2]] = m[3]

    def real(path):
        path = os.path.normpath(path).lstrip("/")
        path = "usr/" + path if path.startswith("lib") else path  # merged /usr
        for _ in range(9):
            path = links.get(path, path)
        return path

    for loads in evidence["loads"]:
        path = evidence["files"][loads["file"]]["path"]
        for need in loads["needs"]:
            theirs = listed.get(path, {}).get(need["name"])
            if theirs is None:
                continue
            theirs = None if "not found" in theirs else real(theirs)
            outcome = need["outcome"]
            ours = outcome["found"]["path"] if isinstance(outcome, dict) and "found" in outcome else None
            if ours == theirs:
                passed += 1
            else:
                failed += 1
                print(f"{stack}: {path} needs {need['name']}: {ours or outcome}, the loader takes {theirs}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
