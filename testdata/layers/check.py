#!/usr/bin/env python3
"""check.py IMAGELINT DIR [CASE...]

Scans every layer case that make.sh wrote to DIR and compares with DIR/expect.json:

  elf                the paths of `libraries`, exactly
  elf_count          their number
  error              exit 2 and a reason on standard error
  error_or_elf       either of the two
  warn               at least one gap
  limit              reads on within the memory limit, or stops with exit 2 and a reason
  elf by platform    the same per --platform

No case may be ended by a signal, print a raw control character, write outside, or take more than LIMIT memory (64 MiB; the highest
is printed).  If DIR also holds one image written by every builder (oci-dir-*, docker-archive.tar, podman-* and so on), all of them
must give the same libraries, packages and device code.  The last line counts."""
import json
import os
import re
import subprocess
import sys
import tempfile

imagelint, folder = sys.argv[1:3]
only = set(sys.argv[3:])
LIMIT_KB = 64 * 1024
SECONDS = 60
escape = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")  # tab and newline are fine


class Run:
    def __init__(self, image, *args):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            command = ["timeout", str(SECONDS), imagelint, "scan", image, *args, "--format", "json", "--no-cache"]
            child = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.code, self.kb = child.returncode, usage.ru_maxrss
            out.seek(0), err.seek(0)
            self.out, self.err = out.read(), err.read()
        try:
            self.report = json.loads(self.out)
        except ValueError:
            self.report = None

    @property
    def libraries(self):
        return sorted(x["path"].lstrip("/") for x in self.report["libraries"])

    @property
    def reason(self):
        return self.err.decode(errors="replace").strip()


def image_of(case):
    archives = {"docker-legacy-save": "docker-legacy-save.tar", "kaniko.tar": "kaniko.tar", "docker25-save.tar.gz": "docker25-save.tar.gz"}
    if case in archives:
        return "docker-archive:" + os.path.join(folder, archives[case])
    return "oci:" + os.path.join(folder, "handmade", case)


def refused(run):
    if run.code != 2:
        return f"exit {run.code}, expected 2"
    if not run.reason:
        return "exit 2 without a reason"


def lists(run, paths):
    if run.report is None:
        return f"exit {run.code}, no report: {run.reason[:200]}"
    want = sorted(p.lstrip("/") for p in paths)
    if run.libraries != want:
        return f"libraries {shorten(run.libraries)}, expected {shorten(want)}"
    if run.code != 0:
        return f"exit {run.code}: {run.reason[:200]}"


def shorten(paths):
    return [p if len(p) < 60 else p[:25] + "…" + p[-25:] for p in paths[:6]]


def judge(case, want):
    """(problem or None, runs)"""
    image = image_of(case)
    elf = want.get("elf")
    if isinstance(elf, dict):
        runs = [Run(image, "--platform", platform) for platform in elf]
        return next((f"{p}: {x}" for p, r in zip(elf, runs) if (x := lists(r, elf[p]))), None), runs
    if case == "i-no-platform":  # two bare manifests under one tag: the config says which is which
        runs = [Run(image, "--platform", "linux/" + a) for a in ("amd64", "arm64")]
        for run, paths in zip(runs, (["opt/libgpu.so"], ["arm.so"])):
            if (a := refused(run)) and (b := lists(run, paths)):
                return f"neither the right image ({b}) nor refused ({a})", runs
        return None, runs
    if case == "docker25-save":
        runs = [Run(image), Run("docker-archive:" + os.path.join(folder, "docker25-save.tar"))]
        return next((x for r in runs if (x := lists(r, elf))), None), runs
    run = Run(image)
    if "error" in want:
        return refused(run), [run]
    if "error_or_elf" in want:
        if (a := refused(run)) and (b := lists(run, ["hp.so"])):
            return f"{a}; {b}", [run]
        return None, [run]
    if "limit" in want:
        return (None if run.code == 0 else refused(run)), [run]
    if case == "h-diffid-mismatch":  # a warning or, stricter, a refusal
        if not refused(run):
            return None, [run]
    if case == "h-pax-desync-L":
        return lists(run, []), [run]
    if "elf_count" in want:
        if run.report is None or run.code != 0:
            return f"exit {run.code}: {run.reason[:200]}", [run]
        n = len(run.libraries)
        return (None if n == want["elf_count"] else f"{n} libraries, expected {want['elf_count']}"), [run]
    if "warn" in want:
        if run.report is None:
            return f"exit {run.code}, no report: {run.reason[:200]}", [run]
        if not run.report["gaps"]:
            return "no gap told", [run]
    if elf is not None:
        return lists(run, elf), [run]
    return None, [run]


passed, problems, high = 0, [], (0, "")
expect = json.load(open(os.path.join(folder, "expect.json")))
for case, want in expect.items():
    if only and case not in only:
        continue
    problem, runs = judge(case, want)
    for run in runs:
        high = max(high, (run.kb, case))
        if run.code == 124:
            problem = f"no end after {SECONDS} s"
        elif run.code < 0 or run.code in (101, 134, 137, 139):
            problem = f"died: exit {run.code}: {run.reason[:300]}"
        elif escape.search(run.out) or escape.search(run.err):
            problem = problem or "a raw control character in the output"
        if run.kb > LIMIT_KB:
            problem = (problem + "; " if problem else "") + f"{run.kb / 1024:.0f} MiB of memory"
    if os.path.exists("/tmp/imagelint-pwned"):
        problem = "wrote outside"
    if problem:
        problems.append(case)
        print(f"{case}: {problem}")
    else:
        passed += 1

# One image, every builder.
sources = [
    "oci:oci-dir-gzip", "oci:oci-dir-zstd", "oci:oci-dir-zstd-chunked", "oci:oci-dir-none", "oci-archive:oci-archive.tar",
    "dir:dir-v2s2", "dir:dir-oci-gz", "docker-archive:docker-archive.tar", "docker-archive:podman-docker-archive",
    "oci-archive:podman-oci-archive", "oci:podman-oci-dir", "dir:podman-docker-dir",
    "docker-archive:podman-multi-image.tar:localhost/t:v2s2",
]
trees = ["dir:rootfs-dir", "tar:rootfs.tar", "squashfs:enroot.sqsh", "squashfs:gzip.sqsh"]


def content(report):
    def strip(x):
        if isinstance(x, dict):
            return {k: strip(v) for k, v in x.items() if k != "layer"}
        return [strip(v) for v in x] if isinstance(x, list) else x

    return {k: strip(report.get(k)) for k in ("libraries", "packages", "device_code")}


for group in (sources, trees):
    first = None
    for source in group:
        kind, name = source.split(":", 1)
        if not os.path.exists(os.path.join(folder, name.split(":")[0])) or (only and name not in only):
            continue
        run = Run(f"{kind}:{folder}/{name}")
        high = max(high, (run.kb, source))
        if run.report is None:
            problem = f"exit {run.code}: {run.reason[:200]}"
        elif first and content(run.report) != first[1]:
            problem = f"differs from {first[0]}"
        else:
            problem = None
            first = first or (source, content(run.report))
        if problem:
            problems.append(source)
            print(f"{source}: {problem}")
        else:
            passed += 1

print(f"highest memory {high[0] / 1024:.1f} MiB ({high[1]})")
print(f"{passed} passed, {len(problems)} failed")
sys.exit(bool(problems))
