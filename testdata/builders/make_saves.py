#!/usr/bin/env python3
"""make_saves.py LAYOUT OUT   the image of an OCI layout as docker save writes it (before and from version 25) and as Kaniko does."""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

layout, out = sys.argv[1:3]
TAG = "demo:latest"


def blob(digest):
    with open(f"{layout}/blobs/sha256/{digest.removeprefix('sha256:')}", "rb") as f:
        return f.read()


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Tar:
    def __init__(self, path):
        self.tar = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)

    def add(self, name, data=b"", kind=tarfile.REGTYPE, link=""):
        info = tarfile.TarInfo(name)
        info.size, info.type, info.linkname, info.mtime = len(data), kind, link, 1767225600
        info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
        self.tar.addfile(info, io.BytesIO(data))

    def json(self, name, value):
        self.add(name, json.dumps(value).encode())


with open(f"{layout}/index.json") as f:
    top = json.load(f)["manifests"][0]
manifest = json.loads(blob(top["digest"]))
config = blob(manifest["config"]["digest"])
layers = [blob(layer["digest"]) for layer in manifest["layers"]]
for layer in layers:
    assert not layer.startswith(b"\x1f\x8b"), "the layout's layers must not be compressed"

# Docker before 25: a folder for each layer, named by a hash that is nothing's digest; the same layer once more is a symlink.
tar = Tar(f"{out}/docker-24.tar")
ids = [sha(b"layer %d" % i) for i in range(len(layers))]
for i, layer in zip(ids, layers):
    tar.add(f"{i}/", kind=tarfile.DIRTYPE)
    tar.add(f"{i}/VERSION", b"1.0")
    tar.json(f"{i}/json", {"id": i})
    tar.add(f"{i}/layer.tar", layer)
tar.add(f"{sha(config)}.json", config)
tar.json("manifest.json", [{"Config": f"{sha(config)}.json", "RepoTags": [TAG], "Layers": [f"{i}/layer.tar" for i in ids]}])
tar.json("repositories", {"demo": {"latest": ids[-1]}})
tar.tar.close()

# From 25: an OCI layout that also has the old manifest.json.
tar = Tar(f"{out}/docker-25.tar")
for folder in ("blobs/", "blobs/sha256/"):
    tar.add(folder, kind=tarfile.DIRTYPE)
stored = [config, *layers, json.dumps(manifest).encode()]
for data in stored:
    tar.add(f"blobs/sha256/{sha(data)}", data)
top = {
    "mediaType": top["mediaType"], "digest": "sha256:" + sha(stored[-1]), "size": len(stored[-1]),
    "annotations": {"io.containerd.image.name": f"docker.io/library/{TAG}", "org.opencontainers.image.ref.name": "latest"},
}
tar.json("index.json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [top]})
tar.json("manifest.json", [{
    "Config": f"blobs/sha256/{sha(config)}", "RepoTags": [TAG], "Layers": [f"blobs/sha256/{sha(layer)}" for layer in layers],
    "LayerSources": {layer["digest"]: layer for layer in manifest["layers"]},
}])
tar.json("oci-layout", {"imageLayoutVersion": "1.0.0"})
tar.tar.close()
with open(f"{out}/docker-25.tar", "rb") as f, open(f"{out}/docker-25.tar.gz", "wb") as g:
    g.write(gzip.compress(f.read(), 6, mtime=0))

# Kaniko: gzipped layers named by their digest, the config by its own, with the algorithm.
tar = Tar(f"{out}/kaniko.tar")
tar.add("sha256:" + sha(config), config)
packed = [gzip.compress(layer, 6, mtime=0) for layer in layers]
for layer in packed:
    tar.add(f"{sha(layer)}.tar.gz", layer)
tar.json("manifest.json", [{"Config": "sha256:" + sha(config), "RepoTags": [TAG], "Layers": [f"{sha(p)}.tar.gz" for p in packed]}])
tar.tar.close()
