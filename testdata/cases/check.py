#!/usr/bin/env python3
"""check.py IMAGELINT [DIR] [CASE...]

Scans the field cases and compares with expect.tsv. DIR is what make.sh wrote (DIR/CASE/oci) or a folder of archives
(DIR/CASE.tar); default: the archives kept here in images/. Differences are printed, the last line counts.
A case that DIR does not hold is skipped, and said so."""
import json
import os
import re
import subprocess
import sys
from collections import defaultdict

here = os.path.dirname(os.path.abspath(__file__))
imagelint = sys.argv[1]
folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "images")
only = set(sys.argv[3:])


def norm(name):
    return re.sub(r"[-_.]+", "-", name or "").lower()


def paths(files):
    """components[].files is a list of paths or of objects, or a count."""
    if not isinstance(files, list):
        return []
    return [(f, None) if isinstance(f, str) else (f.get("path", ""), f.get("verdict")) for f in files]


def ends(path, name):
    return path == name or path.endswith("/" + name)


def touches(finding, target):
    return not finding.get("targets") or target in finding["targets"]


def word_of(report, target, name):
    """The verdict of a component, by its name, or of a file, by the end of its path."""
    for c in target.get("components", []):
        if norm(c["name"]) == norm(name):
            return c["verdict"]
    owner = None
    for c in target.get("components", []):
        for path, verdict in paths(c.get("files")):
            if ends(path, name):
                if verdict:
                    return verdict
                owner = c
    if owner and len(paths(owner["files"])) == 1:
        return owner["verdict"]
    hits = [f for f in report.get("findings", [])
            if touches(f, target["name"]) and ends(f.get("path") or "", name) and f.get("severity") != "note"]
    if hits:
        return hits[0].get("verdict") or "?"
    if owner or any(ends(d["path"], name) for d in report.get("device_code", [])):
        return "ok"
    return None


def text_of(report, target):
    parts = [target.get("why") or ""]
    for f in report.get("findings", []):
        if touches(f, target["name"]):
            parts += [f.get("message") or "", f.get("help") or ""]
            parts += [b if isinstance(b, str) else json.dumps(b, ensure_ascii=False) for b in f.get("because", [])]
    plan = report.get("plan") or {}
    for steps in ("steps", "alternatives"):
        parts += [s.get("summary") or "" for s in plan.get(steps, [])]
    parts += [u if isinstance(u, str) else json.dumps(u, ensure_ascii=False) for u in plan.get("unresolved", [])]
    return "\n".join(str(p) for p in parts)


rows = defaultdict(list)
with open(os.path.join(here, "expect.tsv")) as f:
    for line in f:
        if line.strip() and not line.startswith("#"):
            case, *rest = line.rstrip("\n").split("\t")
            rows[case].append(rest)

passed = failed = 0
for case, expected in rows.items():
    if only and case not in only:
        continue
    image = next((i for kind, i in (("oci:", f"{folder}/{case}/oci"), ("oci-archive:", f"{folder}/{case}.tar")) if os.path.exists(i)), None)
    if image is None:
        print(f"{case}: not in {folder}, skipped")
        continue
    kind = "oci:" if os.path.isdir(image) else "oci-archive:"
    command = [imagelint, "scan", kind + image, "--fleet", f"{here}/fleets/{case}.toml", "--format", "json"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        report = json.loads(run.stdout)
        targets = {t["name"]: t for t in report["targets"]}
    except (ValueError, KeyError) as e:
        print(f"{case}: exit {run.returncode}, no report ({e}): {run.stderr.decode(errors='replace').strip()[:300]}")
        failed += len(expected)
        continue
    worst = set()
    for target, image_word, component, word, must, must_not, origin in expected:
        wrong = []
        t = targets.get(target)
        if t is None:
            wrong.append("target absent")
        else:
            worst.add(t["verdict"])
            if t["verdict"] not in image_word.split("|"):
                wrong.append(f"image is {t['verdict']}, expected {image_word}")
            if component != "-":
                got = word_of(report, t, component)
                if word != "-" and got not in word.split("|"):
                    wrong.append(f"{component} is {got or 'not reported'}, expected {word}")
            text = text_of(report, t)
            if must != "-" and not re.search(must, text):
                wrong.append(f"message lacks /{must}/")
            if must_not != "-" and (m := re.search(must_not, text)):
                wrong.append(f"message must not say {m.group(0)!r}")
        if wrong:
            failed += 1
            print(f"{case} {target} [{origin}]: " + "; ".join(wrong))
            if t is not None:
                print(f"    why: {t.get('why')}")
        else:
            passed += 1
    want = 2 if "unknown" in worst else 1 if worst & {"fail", "blocked", "cpu"} else 0
    if run.returncode != want:
        failed += 1
        print(f"{case}: exit {run.returncode}, the verdicts {sorted(worst)} ask for {want}: {run.stderr.decode(errors='replace').strip()[:200]}")
    else:
        passed += 1
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
