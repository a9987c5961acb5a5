#!/usr/bin/env python3
"""make_wheel.py SITE-PACKAGES OUT.whl   a wheel of all that is there, by Python's zipfile; symbolic links become files, as pip makes them."""
import os
import sys
import zipfile

site, out = sys.argv[1:3]
names = sorted(os.path.relpath(os.path.join(d, f), site) for d, _, files in os.walk(site) for f in files)
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name in names:
        if os.path.islink(os.path.join(site, name)):
            continue
        info = zipfile.ZipInfo(name.replace(os.sep, "/"), (2026, 1, 1, 0, 0, 0))
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o100755 << 16
        with open(os.path.join(site, name), "rb") as f:
            wheel.writestr(info, f.read())
