#!/usr/bin/env python3
"""pack.py [--env NAME=VALUE]... [--label NAME=VALUE]... [--cmd WORD]... LAYER...  > image.tar

Writes an image as `docker save` does, one layer per folder, to standard output: nothing is stored twice. What layer.tar will
measure is counted before it is written; the digests come out on the way and stand in the config at the end."""
import argparse
import hashlib
import json
import os
import sys
import tarfile

EPOCH = 1767225600


def entries(folder):
    """(path in the image, file on disk, tar header), sorted; hard links are written as files."""
    found = []
    for base, folders, files in os.walk(folder):
        found += [os.path.join(base, name) for name in folders + files]
    for full in sorted(found):
        name = os.path.relpath(full, folder)
        info = tarfile.TarInfo(name)
        stat = os.lstat(full)
        info.mtime, info.mode = EPOCH, stat.st_mode & 0o7777
        if os.path.islink(full):
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(full), 0o777
        elif os.path.isdir(full):
            info.type = tarfile.DIRTYPE
        elif os.path.isfile(full):
            info.size = stat.st_size
        else:
            continue
        yield name, full, info


def header(info):
    return info.tobuf(tarfile.PAX_FORMAT)


def padded(size):
    return (size + 511) // 512 * 512


def layer_size(folder):
    return sum(len(header(i)) + padded(i.size) for _, _, i in entries(folder)) + 1024


def write_layer(folder, out):
    digest = hashlib.sha256()

    def put(data):
        digest.update(data)
        out.write(data)

    for _, full, info in entries(folder):
        put(header(info))
        if info.isreg():
            left = info.size
            with open(full, "rb") as f:
                while left:
                    data = f.read(min(left, 1 << 20))
                    if not data:
                        sys.exit(f"{full} became shorter")
                    left -= len(data)
                    put(data)
            put(b"\0" * (padded(info.size) - info.size))
    put(b"\0" * 1024)
    return digest.hexdigest()


def member(out, name, data):
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(data), EPOCH
    out.write(header(info) + data + b"\0" * (padded(len(data)) - len(data)))


parser = argparse.ArgumentParser()
parser.add_argument("--env", action="append", default=[])
parser.add_argument("--label", action="append", default=[])
parser.add_argument("--cmd", action="append", default=[])
parser.add_argument("--tag", default="stack:latest")
parser.add_argument("layers", nargs="+")
args = parser.parse_args()

out = open(sys.stdout.fileno(), "wb", buffering=1 << 20)
names, digests = [], []
for index, folder in enumerate(args.layers):
    info = tarfile.TarInfo(f"layer{index}/layer.tar")
    info.size, info.mtime = layer_size(folder), EPOCH
    out.write(header(info))
    digests.append(write_layer(folder, out))
    out.write(b"\0" * (padded(info.size) - info.size))
    names.append(info.name)
config = json.dumps({
    "architecture": "amd64", "os": "linux", "created": "2026-01-01T00:00:00Z",
    "config": {"Env": args.env, "Cmd": args.cmd or None, "Labels": dict(l.split("=", 1) for l in args.label) or None},
    "rootfs": {"type": "layers", "diff_ids": ["sha256:" + d for d in digests]},
    "history": [{"created": "2026-01-01T00:00:00Z", "created_by": f"COPY {os.path.basename(f)} /"} for f in args.layers],
}).encode()
name = hashlib.sha256(config).hexdigest() + ".json"
member(out, name, config)
member(out, "manifest.json", json.dumps([{"Config": name, "RepoTags": [args.tag], "Layers": names}]).encode())
out.write(b"\0" * 1024)
out.flush()
