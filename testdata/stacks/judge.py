#!/usr/bin/env python3
"""judge.py IMAGELINT EVIDENCE-DIR [STACK...]

Judges saved scans (STACK.json.gz) for the fleets here and compares with expect.tsv: the word, and that every error or warning
about the target is of a kind that stands there. Prints every verdict and all errors and warnings in full; the last line counts. A stack without evidence is skipped, and said so."""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

here = os.path.dirname(os.path.abspath(__file__))
imagelint, evidence, only = sys.argv[1], sys.argv[2], sys.argv[3:]

expected = defaultdict(dict)
with open(os.path.join(here, "expect.tsv")) as f:
    for line in f:
        if line.strip() and not line.startswith("#"):
            stack, target, words, reason = line.rstrip("\n").split("\t")[:4]
            expected[stack][target] = (words, reason)


def about(finding, target):
    return not finding.get("targets") or target in finding["targets"]


def shown(finding):
    lines = [f"    {finding['severity']}[{finding['rule']}] {finding.get('verdict') or ''} {finding['message']}"]
    if finding.get("targets"):
        lines.append("        targets: " + ", ".join(finding["targets"]))
    if finding.get("path"):
        lines.append("        path: " + finding["path"])
    lines += ["        because: " + (b if isinstance(b, str) else json.dumps(b, ensure_ascii=False)) for b in finding.get("because", [])]
    if finding.get("help"):
        lines.append("        help: " + finding["help"])
    return "\n".join(lines)


passed = failed = 0
for stack in only or list(expected):
    file = os.path.join(evidence, stack + ".json.gz")
    if not os.path.exists(file):
        print(f"{stack}: no evidence, skipped")
        continue
    with tempfile.NamedTemporaryFile(suffix=".json") as plain:
        with gzip.open(file) as packed:
            plain.write(packed.read())
        plain.flush()
        command = [imagelint, "scan", "--from-evidence", plain.name, "--fleet", f"{here}/fleets/{stack}.toml", "--format", "json"]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        report = json.loads(run.stdout)
    except ValueError:
        print(f"{stack}: exit {run.returncode}, no report: {run.stderr.decode(errors='replace').strip()[:300]}")
        failed += 1
        continue
    print(f"== {stack}")
    targets = {t["name"]: t for t in report["targets"]}
    for name in sorted(set(expected[stack]) ^ set(targets)):
        print(f"  WRONG {name}: only in {'expect.tsv' if name in expected[stack] else 'the fleet'}")
        failed += 1
    for name, t in targets.items():
        if name not in expected[stack]:
            continue
        words, reason = expected[stack][name]
        wrong = []
        if t["verdict"] not in words.split("|"):
            wrong.append(f"expected {words}")
        loud = [f for f in report["findings"] if about(f, name) and f["severity"] in ("error", "warning")]
        strange = [f for f in loud if reason == "-" or not re.search(reason, shown(f))]
        if strange:
            wrong.append("not explained: " + ", ".join(sorted({f"{f['rule']} {f.get('path') or ''}".strip() for f in strange})))
        failed, passed = failed + bool(wrong), passed + (not wrong)
        print(f"  {'WRONG ' if wrong else ''}{t['verdict']:<8} {name} ({t.get('gpu')}, {t.get('driver')}): {t.get('why')}" + ("; ".join([""] + wrong)))
    for finding in report["findings"]:
        if finding["severity"] in ("error", "warning"):
            print(shown(finding))
    for gap in report.get("gaps", []):
        print(f"    gap {gap.get('path')}: {gap.get('why')}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
