"""A second, independent reading of a file: every fatbin region, raw cubin and PTX text in it, wherever it stands.

Works on the whole file by the magic numbers alone and is believed only when a region closes exactly: all entry headers add up to the
size in the region header. It shares no code with imagelint and no method with cuobjdump, which looks into named sections only."""
import mmap
import re
import struct
from collections import Counter

REGION = bytes.fromhex("50ed55ba")
FORMS = {1: "ptx", 2: "elf", 8: "nvvm", 128: "tileir"}
SECTIONS = (".nv_fatbin", "__nv_relfatbin")  # what cuobjdump reads
PTX = re.compile(rb"\.version[ \t]+\d+\.\d+\s+\.target[ \t]+sm_(\d+[af]?)")


def region(data, at):
    """The (form, arch, payload bytes) of each entry of the region at `at`, and its end; None when it is no region."""
    if at + 16 > len(data):
        return None
    version, header, size = struct.unpack_from("<HHQ", data, at + 4)
    end = at + header + size
    if version != 1 or header != 16 or end > len(data):
        return None
    entries, p = [], at + header
    while p < end:
        if p + 64 > end:
            return None
        kind, _, header, payload = struct.unpack_from("<HHIQ", data, p)
        arch, = struct.unpack_from("<I", data, p + 28)
        flags, = struct.unpack_from("<Q", data, p + 40)
        if header < 64 or p + header + payload > end:
            return None
        suffix = "a" if flags & 0x100000 else "f" if flags & 0x200000 else ""
        entries.append((FORMS.get(kind, f"kind {kind}"), f"{arch}{suffix}", payload))
        p += header + payload
    return (entries, end) if p == end else None


def sections(data):
    """(name, start, end) of the ELF sections that occupy the file."""
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    if not table or table + size * count > len(data):
        return []
    rows = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    text = rows[names][4]
    out = []
    for name, kind, _, _, start, length in rows:
        if kind != 8:
            stop = data.find(b"\0", text + name)
            out.append((data[text + name:stop].decode("latin1"), start, start + length))
    return out


def compat(data, at):
    """Attribute 9 of a new cubin's .nv.compat: is it arch-specific?"""
    cubin = data[at:at + (1 << 20)]
    for name, start, end in sections(cubin):
        if name == ".nv.compat":
            records, p = cubin[start:end], 0
            while p + 4 <= len(records):
                form, attribute, value = struct.unpack_from("<BBH", records, p)
                if form == 4:
                    p += 4 + value
                    continue
                if attribute == 9:
                    return bool(value & 0xFF)
                p += 4
    return False


def walk(path):
    """{"listed": …, "outside": …, "cubin": …, "text": …} multisets of (form, arch), the names of the places outside, and
    "bytes": the stored payload bytes of (form, arch) in regions, "loadable": the same but for input of the device linker."""
    found = {k: Counter() for k in ("listed", "outside", "cubin", "text", "bytes", "loadable")}
    places = Counter()
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
        parts = sections(data)
        where = lambda at: next((n for n, a, b in parts if a <= at < b), "?")
        covered, at = [], data.find(REGION)
        while at >= 0:
            got = region(data, at)
            if got:
                name = where(at)
                inside = name in SECTIONS
                found["listed" if inside else "outside"].update((form, arch) for form, arch, _ in got[0])
                for form, arch, payload in got[0]:
                    found["bytes"][(form, arch)] += payload
                    if name != "__nv_relfatbin":
                        found["loadable"][(form, arch)] += payload
                if not inside:
                    places[name] += len(got[0])
                covered.append((at, got[1]))
            at = data.find(REGION, got[1] if got else at + 1)
        free = [(a, b) for (_, a), (b, _) in zip([(0, 0), *covered], [*covered, (len(data), 0)]) if a < b]
        for start, end in free:
            at = data.find(b"\x7fELF\x02\x01", max(start, 1), end)
            while at >= 0:
                if at + 64 <= end and data[at + 18:at + 20] == b"\xbe\x00":
                    abi, (flags,) = data[at + 8], struct.unpack_from("<I", data, at + 48)
                    if abi >= 8:
                        arch = f"{flags >> 8 & 0xFF}" + ("a" if flags & 8 or compat(data, at) else "")
                    else:
                        arch = f"{flags & 0xFF}" + ("a" if flags & 0xFF == 90 and flags & 0x800 else "")
                    found["cubin"][("elf", arch)] += 1
                at = data.find(b"\x7fELF\x02\x01", at + 4, end)
            at = data.find(b".target", start, end)
            while at >= 0:
                if m := PTX.search(data[max(start, at - 64):min(end, at + 64)]):
                    found["text"][("ptx", m.group(1).decode())] += 1
                at = data.find(b".target", at + 7, end)
    found["places"] = places
    return found
