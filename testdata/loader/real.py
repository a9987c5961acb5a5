"""What the real loaders do: ld.so and musl run in a chroot of a tree, as `ldd FILE` does. Needs root."""

import os
import re
import shutil
import subprocess

GLIBC = "/lib64/ld-linux-x86-64.so.2"
MUSL = "/lib/ld-musl-x86_64.so.1"
# What this program takes a target's processor to have.
MASK = ["--glibc-hwcaps-mask", "x86-64-v3:x86-64-v2"]
REFUSED = "refused"


def dynamic(path):
    """(needed, soname, interpreter) of an ELF file for x86-64, or None."""
    with open(path, "rb") as f:
        head = f.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF" or head[18:20] != b"\x3e\0" or head[16:18] not in (b"\2\0", b"\3\0"):
        return None
    env = {**os.environ, "LC_ALL": "C"}
    text = subprocess.run(["readelf", "-dlW", path], capture_output=True, text=True, errors="replace", env=env).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    soname = re.search(r"\(SONAME\).*\[(.*)\]", text)
    interpreter = re.search(r"program interpreter: (.*)\]", text)
    return needed, soname and soname[1], interpreter and interpreter[1]


def elfs(root):
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path) or name.startswith(".real-"):
                continue
            facts = dynamic(path)
            if facts:
                yield path[len(root) + 1 :], *facts


class Loader:
    """A loader lent to a tree: a copy in its root while the questions last."""

    def __init__(self, root, env, musl, own=None):
        self.root, self.musl = root, musl
        self.env = dict(line.split("=", 1) for line in env)
        self.name = "/.real-ld" if own is None else own
        self.lent = own is None
        self.sonames = {}

    def __enter__(self):
        if self.lent:
            shutil.copy(os.path.realpath(MUSL if self.musl else GLIBC), self.root + self.name)
            os.chmod(self.root + self.name, 0o755)
        return self

    def __exit__(self, *_):
        if self.lent:
            os.remove(self.root + self.name)

    def run(self, file, **more):
        def enter():
            os.chroot(self.root)
            os.chdir("/")

        # As ldd does it: with --list glibc gives up at the first name that is missing.
        command = [self.name, "--list", file] if self.musl else [self.name, *MASK, file]
        env = {**self.env, "LD_TRACE_LOADED_OBJECTS": "1", **more}
        done = subprocess.run(command, env=env, preexec_fn=enter, capture_output=True, timeout=60)
        return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def real(self, path):
        """The real path inside the tree, links followed within it."""
        todo, at, hops = path.split("/")[::-1], "", 0
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                at = os.path.dirname(at)
                continue
            full = f"{self.root}/{at}/{name}"
            if os.path.islink(full):
                hops += 1
                if hops > 40:
                    return None
                to = os.readlink(full)
                if to.startswith("/"):
                    at = ""
                todo += to.split("/")[::-1]
            elif os.path.lexists(full):
                at = f"{at}/{name}".lstrip("/")
            else:
                return None
        return at

    def soname(self, path):
        if path not in self.sonames:
            facts = dynamic(f"{self.root}/{path}")
            self.sonames[path] = facts and facts[1]
        return self.sonames[path]

    def needs(self, file, needed):
        """{name: real path, None (not found) or REFUSED}; names behind a refusal are left out. And all maps."""
        out, err = self.run("/" + file)
        maps = {}
        for line in out.splitlines():
            if m := re.match(r"\s*(.*) => not found", line):
                maps.setdefault(m[1], None)
            elif m := re.match(r"\s*(.*) => (/.*) \(0x", line):
                maps.setdefault(m[1], self.place(m[2]))
            elif m := re.match(r"\s*(\S.*) \(0x", line):
                maps.setdefault(m[1], self.place(m[1]))
        for m in re.finditer(r"Error loading shared library ([^\n]*?): .*", err):
            if self.musl:
                maps[m[1]] = None
        refused = re.search(r"error while loading shared libraries: (\S+): (.*)", out + err)
        found = {}
        trace = None
        for name in needed:
            if name in maps:
                found[name] = maps[name]
            elif self.musl and re.match(r"lib(c|pthread|rt|m|dl|util|xnet)\.", name):
                found[name] = MUSL[1:]
            elif loaded := [p for p in [file, *maps.values()] if p and not self.musl and self.soname(p) == name]:
                found[name] = loaded[0]
            elif name == "ld-linux-x86-64.so.2":
                found[name] = self.real(GLIBC)
            else:
                # Under another name, or not reached.
                trace = trace or self.trace(file)
                if name in trace:
                    last = trace[name]
                    if refused and refused[1] == last:
                        found[name] = REFUSED
                        break
                    found[name] = last and self.real(last)
                elif "/" in name and (p := self.real(name.replace("$ORIGIN", "/" + os.path.dirname(file)))):
                    found[name] = REFUSED if refused and refused[1] == name else p
        return found, maps, out, err

    def place(self, path):
        if path == self.name:
            return MUSL[1:] if self.musl else self.real(GLIBC)
        return self.real(path)

    def trace(self, file):
        """The last path that was tried for each name."""
        out, err = self.run("/" + file, LD_DEBUG="libs")
        tried, name = {}, None
        for line in (err + out).splitlines():
            if m := re.search(r"find library=(.*) \[0\]; searching", line):
                name = m[1]
                tried[name] = None
            elif (m := re.search(r"trying file=(.*)", line)) and name:
                tried[name] = m[1]
        return tried
