#!/usr/bin/env python3
"""compare.py ORACLE.jsonl OURS.jsonl [-v]

Compares what BuildKit's parser (oracle/main.go) and ours (parse_dump.rs) say of the same files, in the same order: the verdict; of files
that both read to the end the keywords and start lines, flags, arguments, pairs and heredocs. Prints how many files agree in each, every
difference, and with -v the messages where both refuse. Exit 1 where a file differs."""
import json
import sys

KNOWN = set("""add arg cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal user volume
workdir""".split())
oracle, ours = ([json.loads(line) for line in open(name, encoding="utf-8")] for name in sys.argv[1:3])
verbose = "-v" in sys.argv
counts = {}
differing = set()


def keyword(i):
    return i["keyword"] if i["keyword"] in KNOWN else "?"


def flags(i):
    """BuildKit takes the bytes of what is not ASCII for characters."""
    return [f if f.isascii() else "?" for f in i.get("flags") or []]


def args(i, theirs):
    k = i.get("onbuild") or i["keyword"]
    if k in ("env", "label", "arg", "onbuild") or keyword(i) == "?" or i.get("onbuild", "run") not in KNOWN:
        return None
    if i.get("onbuild") == "healthcheck":
        return None  # ours has the command alone
    values = list(i["args"])
    if theirs and k == "healthcheck" and values[:1] and values[0].upper() == "CMD":
        values = values[1:]
    if k == "from":
        values = [v if n != 1 else "AS" for n, v in enumerate(values)]
    return values


def pairs(i):
    """None where BuildKit made nothing of them because of an error."""
    return [(p["name"], p["value"]) for p in i.get("kv") or []]


def heredocs(i):
    return [(h["name"], h["expand"], h["chomp"], h["content"]) for h in i.get("heredocs") or []]


def note(what, name, a, b):
    same = a == b
    counts.setdefault(what, [0, 0])
    counts[what][0] += same
    counts[what][1] += 1
    if not same:
        differing.add(name)
        print(f"{what}: {name}\n  BuildKit: {a!r}"[:2000], f"\n  ours:     {b!r}"[:2000])


for theirs, mine in zip(oracle, ours, strict=True):
    name = theirs["file"]
    assert name == mine["file"], (name, mine["file"])
    note("lossless", name, True, mine["lossless"])
    verdict = [theirs["ok"], mine["ok"]]
    note("verdict", name, [theirs["ok"]], [mine["ok"]])
    if verdict[0] != verdict[1]:
        print(f"  because: {theirs['error']!r} / {mine['error']!r}")
    if verbose and verdict == [False, False]:
        print(f"both refuse {name}:\n  BuildKit: {theirs['error']} (line {theirs.get('error_line')})\n"
              f"  ours:     {mine['error']} (line {mine['error_line']})")
    if theirs.get("phase", "instructions") != "instructions":
        continue  # BuildKit stopped reading
    left, right = theirs["instructions"], mine["instructions"]
    note("keywords", name, [keyword(i) for i in left], [keyword(i) for i in right])
    note("starts", name, [i["start"] for i in left], [i["start"] for i in right])
    # Behind the last instruction BuildKit counts comments and blank lines where a continuation has nothing more to come.
    note("ends", name, [i["end"] for i in left[:-1]], [i["end"] for i in right[:-1]])
    note("escape", name, theirs.get("escape"), mine["escape"])
    if len(left) != len(right):
        continue
    # Of an instruction that BuildKit refuses it has not kept all.
    both = [(a, b) for a, b in zip(left, right) if not a.get("error")]
    for what, of in (("flags", flags), ("pairs", pairs), ("heredocs", heredocs)):
        note(what, name, [of(a) for a, _ in both], [of(b) for _, b in both])
    note("arguments", name, [args(a, True) for a, _ in both], [args(b, False) for _, b in both])
    # An instruction before the first FROM is none that BuildKit's tree marks.
    early = next((n for n, i in enumerate(left) if i["keyword"] != "arg"), None)
    note("refused", name, *([bool(i.get("error")) for n, i in enumerate(side) if n != early or i["keyword"] == "from"]
                            for side in (left, right)))

for what, (same, all_) in counts.items():
    print(f"{what:10} {same}/{all_} = {100 * same / max(all_, 1):.2f} %")
print(f"{len(differing)} of {len(oracle)} files differ")
sys.exit(bool(differing))
