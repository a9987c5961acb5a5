#!/usr/bin/env python3
"""rootfs.py IMAGELINT ROOTFS [--env NAME=VALUE]... [--root DIR]

Every ELF file of a root file system (or below --root in it) and every name it needs: the same file as the real loader of
that root file system, run in a chroot, takes? Prints every difference that is not explained, and how many there are of
each kind. The environment reaches imagelint by an OCI config of its own; without --env the folder itself is scanned."""

import argparse
import collections
import hashlib
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from real import REFUSED, Loader, elfs

parser = argparse.ArgumentParser()
parser.add_argument("imagelint")
parser.add_argument("rootfs")
parser.add_argument("--env", action="append", default=[])
parser.add_argument("--root", default="")
parser.add_argument("--report")
args = parser.parse_args()


def scan():
    if args.report:
        return json.load(open(args.report))
    image = "dir:" + args.rootfs
    with tempfile.TemporaryDirectory() as top:
        if args.env:
            # A layer of the whole tree, streamed; digests are of the tar as written.
            os.makedirs(top + "/blobs/sha256")
            tar = subprocess.Popen(["tar", "-C", args.rootfs, "-cf", "-", "."], stdout=subprocess.PIPE)
            digest, size = hashlib.sha256(), 0
            with open(top + "/layer", "wb") as out:
                while chunk := tar.stdout.read(1 << 20):
                    digest.update(chunk)
                    size += out.write(chunk)
            layer = {"digest": "sha256:" + digest.hexdigest(), "size": size}
            os.rename(top + "/layer", f"{top}/blobs/sha256/{digest.hexdigest()}")

            def blob(value):
                data = json.dumps(value).encode()
                name = hashlib.sha256(data).hexdigest()
                open(f"{top}/blobs/sha256/{name}", "wb").write(data)
                return {"digest": "sha256:" + name, "size": len(data)}

            oci = "application/vnd.oci.image."
            config = {"architecture": "amd64", "os": "linux", "config": {"Env": args.env}, "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
            manifest = {
                "schemaVersion": 2,
                "mediaType": oci + "manifest.v1+json",
                "config": {"mediaType": oci + "config.v1+json", **blob(config)},
                "layers": [{"mediaType": oci + "layer.v1.tar", **layer}],
            }
            row = {"mediaType": oci + "manifest.v1+json", **blob(manifest), "annotations": {"org.opencontainers.image.ref.name": "t"}}
            open(top + "/index.json", "w").write(json.dumps({"schemaVersion": 2, "manifests": [row]}))
            open(top + "/oci-layout", "w").write('{"imageLayoutVersion":"1.0.0"}')
            image = f"oci:{top}:t"
        command = [args.imagelint, "scan", image, "--format", "json", "--no-cache"]
        return json.loads(subprocess.run(command, capture_output=True).stdout)


report = scan()
said = {lib["path"]: {n["soname"]: (n.get("found"), n.get("why") or "") for n in lib["needs"]} for lib in report["libraries"]}
kinds = collections.Counter()
files = 0
with Loader(args.rootfs, args.env, False) as loader:
    for path, needed, _, interpreter in elfs(args.rootfs):
        if not needed or not path.startswith(args.root):
            continue
        files += 1
        found, _, _, err = loader.needs(path, needed)
        if not found:
            kinds["the real loader says nothing: " + (err.strip().split(": ", 1)[-1] or "no output")[:70]] += 1
        for name, real in found.items():
            got, why = said.get(path, {}).get(name, ("no row", ""))
            if got == real or (real == REFUSED and got is None and "/" in why):
                kinds["same file" if real not in (None, REFUSED) else "not found by either"] += 1
                continue
            kind = "DIFFERENT"
            if real is None and got and got != "no row":
                kind = "found in another process: " + why.split(" of ")[0].split(" by ")[0]
            if kind == "DIFFERENT" or kinds[kind] < 12:
                print(f"{kind}: {path} {name}\n    real {real}\n    ours {got} ({why})")
            kinds[kind] += 1
print(f"{files} files")
for kind, count in kinds.most_common():
    print(f"{count:7} {kind}")
sys.exit(bool(kinds["DIFFERENT"]))
