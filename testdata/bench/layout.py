#!/usr/bin/env python3
"""layout.py LAYOUT gzip|zstd TAR PACKED [TAR PACKED…]   an OCI layout (tag latest, linux/amd64) of ready-made layers.
TAR is the unpacked layer, or a file NAME.diff_id that holds its sha256. The blobs are hard links where possible."""
import hashlib
import json
import os
import shutil
import sys

layout, packing, *files = sys.argv[1:]


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def blob(data):
    digest = hashlib.sha256(data).hexdigest()
    with open(os.path.join(blobs, digest), "wb") as f:
        f.write(data)
    return {"digest": "sha256:" + digest, "size": len(data)}


shutil.rmtree(layout, ignore_errors=True)
blobs = os.path.join(layout, "blobs", "sha256")
os.makedirs(blobs)
layers, diff_ids = [], []
for tar, packed in zip(files[::2], files[1::2]):
    diff_ids.append("sha256:" + (open(tar).read().strip() if tar.endswith(".diff_id") else sha256(tar)))
    digest = sha256(packed)
    target = os.path.join(blobs, digest)
    try:
        os.link(packed, target)
    except OSError:
        shutil.copyfile(packed, target)
    layers.append({"mediaType": f"application/vnd.oci.image.layer.v1.tar+{packing}", "digest": "sha256:" + digest,
                   "size": os.path.getsize(packed)})
config = blob(json.dumps({
    "architecture": "amd64", "os": "linux",
    "config": {"Env": ["PATH=/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]},
    "rootfs": {"type": "layers", "diff_ids": diff_ids},
    "history": [{"created_by": f"COPY layer {i} /"} for i in range(len(layers))]}).encode())
manifest = blob(json.dumps({
    "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config}, "layers": layers}).encode())
with open(os.path.join(layout, "oci-layout"), "w") as f:
    f.write('{"imageLayoutVersion":"1.0.0"}')
with open(os.path.join(layout, "index.json"), "w") as f:
    json.dump({"schemaVersion": 2, "manifests": [{
        "mediaType": "application/vnd.oci.image.manifest.v1+json", **manifest,
        "annotations": {"org.opencontainers.image.ref.name": "latest"}}]}, f)
