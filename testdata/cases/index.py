#!/usr/bin/env python3
"""index.py LAYOUT ARCH...   joins the tags ARCH... of an OCI layout to one multi-platform index, tag "latest"."""
import hashlib
import json
import os
import sys

layout, names = sys.argv[1], sys.argv[2:]
path = os.path.join(layout, "index.json")
top = json.load(open(path))
REF = "org.opencontainers.image.ref.name"
manifests = []
for name in names:
    (d,) = [m for m in top["manifests"] if m.get("annotations", {}).get(REF) == name]
    manifests.append({"mediaType": d["mediaType"], "digest": d["digest"], "size": d["size"],
                      "platform": {"architecture": name, "os": "linux"}})
kind = "application/vnd.oci.image.index.v1+json"
blob = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": manifests}).encode()
digest = hashlib.sha256(blob).hexdigest()
with open(os.path.join(layout, "blobs/sha256", digest), "wb") as f:
    f.write(blob)
top["manifests"] = [{"mediaType": kind, "digest": "sha256:" + digest, "size": len(blob), "annotations": {REF: "latest"}}]
json.dump(top, open(path, "w"))
