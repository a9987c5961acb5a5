#!/usr/bin/env python3
"""mix.py COUNT FOLDER [SEED]

Writes files made of Dockerfile tokens in random order, many of them wrong, for compare.py; prints their names."""
import os
import random
import sys

count, folder = int(sys.argv[1]), sys.argv[2]
rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
pick = rng.choice

KEYWORDS = """FROM RUN COPY ADD ENV ARG LABEL CMD ENTRYPOINT WORKDIR USER EXPOSE VOLUME SHELL STOPSIGNAL HEALTHCHECK ONBUILD MAINTAINER
run From copy onbuild RUNN apt-get && ; } EOF""".split()
COMMON = ["RUN", "COPY", "ENV", "ARG", "FROM", "ONBUILD", "LABEL", "HEALTHCHECK", "ADD", "CMD"]
FLAGS = ["--mount=type=cache,target=/x", "--mount=type=bind,from=$x", "--mount=from=x$", "--mount=", "--mount", '--mount="a,b"',
         '--mount=\'"a,b",c\'', "--mount=a\\ b", "--from=a", "--from", "--from=", "--chown=a:b", "--chmod=755", "--link", "--link=true",
         "--link=x", "--link=", "--parents", "--exclude=a", "--exclude=b", "--network=none", "--network=x", "--security=sandbox",
         "--device=a,required", "--device=a,b", "--device=name=a,required=q", "--platform=$x", "--interval=5s", "--interval=x",
         "--timeout=1us", "--retries=3", "--retries=-1", "--start-period=1.5h", "--start-interval=0", "--keep-git-dir", "--unpack=false",
         "--checksum=x", "--foo", "--", "---x", "-", "-x", "--a'b c'", '--"from=x"', "--from='x", "--é=ü", "--link\\", "--=x"]
WORDS = ["a", "b", "x", "AS", "as", "Name", "9x", "a=b", "a=", "=b", "=", "a='b c'", 'a="b c"', "a=b\\ c", "'", '"', "''", '""', "\\",
         "\\\\", "\\\\\\", "`", "``", "$x", "${x}", "${x:-y}", "${x:-a b}", "${x#y}", "${x/a/b}", "${x//a/b}", "${", "${}", "${x,,}",
         "${#x}", "${x:0:3}", "$", "$1", "$@", "<<EOF", "<<-EOF", "<< EOF", "<<'EOF'", '<<-"E F"', "<<~EOF", "3<<EOF", "<<<EOF", "<<", "<",
         "cat<<EOF", ">x", "<<EOF>x", "<<E\\ F", "<<''", "<<$x", "<<A", "<<B", '"<<A"', "|", "&&", "#", "#x", "[", "]", '["a","b"]',
         '["a", 1]', "['a']", '["a",]', "[]", '[""]', '["a","<<A"]', '[" "]', '["\\u0041\\ud83d"]', "[1e999]", '[{"a":[]}]', '["a"] b',
         '["\\x"]', "CMD", "NONE", "cmd", "none", "RUN", "ENV", "FROM", "ONBUILD", "COPY", "MAINTAINER", "scratch", "é", "\u00a0", "\u3000",
         "\x0b", "\x0c", "\r", "\u0085", "\ufeff", ",", "{", "}", "%"]
ENDS = ["\n"] * 12 + ["\r\n"] * 2 + ["\r\r\n", " \n", "\\\n", "\\\n", " \\\n", " \\\n", "\\ \t\n", "\\\\\n", "\\\\\\\n", "`\n", " `\n", "\\\r\n"]
BLANKS = [" "] * 8 + ["  ", "\t", "", " \\\n", "\\\n", " \\\n  # comment\n", " \\\n\n", "\u00a0", "\r", "\x0b"]
LINES = ["# comment", "", "  ", "\t# x", "#", "# escape=`", "#escape=\\", "# syntax=a", "# check=skip=all", "EOF", "\tEOF", "E F", "A", "B",
         "EOF ", "\\", "  \\", "# escape = ` ", "// syntax=x", "a b", "EOF\r", "$x", "FROM x"]


ALPHABETS = ["'\"\\$a <", "${}:-x <'", "<-'\"E\\ $", '[]",a1 \\', '{}[]":,01e.-', "=a'\"\\ `", "-=,'\"a\\ ", "/#%${}x<E ", "0123456789.smhu-+"]
LEADS = ["RUN ", "RUN cat <<", "RUN cat << A ", "CMD [", 'CMD ["a",', "COPY [", "ENV a=", "LABEL ", "ARG ", "RUN --mount=", "COPY --", "RUN x ${x",
         "HEALTHCHECK --interval=", "HEALTHCHECK --retries=", "ONBUILD RUN <<", "RUN --device=", "VOLUME [", "SHELL [", "FROM a AS "]


def noise():
    alphabet = pick(ALPHABETS)
    return pick(LEADS) + "".join(pick(alphabet) for _ in range(rng.randrange(1, 14))) + pick(["", "", "]", '"]', " CMD x", "\nA\n", "\nEOF\n"])


OPENERS = [("<<A", "A"), ("<<-A", "A"), ("<< A", "A"), ("<<'A'", "A"), ('<<-"B C"', "B C"), ("5<<B", "B"), ("<<B\\ C", "B C"), ("<<~A", "~A"),
           ("<<$x", "$x"), ("<<A>x", "A>x"), ("<<${x}", "${x}"), ("<<\"$x\"", "$x"), ("<<'a\\b'", "a\\b"), ("<<\"a\\b\"", "a\\b"),
           ("<<\"a\\\"b\"", "a\"b"), ("${x:- <<A}", "A}"), ("x${y:-z}<<A", "A"), ("<<\\'A", "'A")]
AROUND = ["cat", "python -", "&&", "|", ">x", "$y", "${y:-a b}", "'a b'", '"<<X"', "\\<", "<x", "a\\ b", "${y#\\*}", "\\\n", "# no", "/dst", "it's"]


def heredoc():
    found = [pick(OPENERS) for _ in range(pick([1, 1, 1, 2, 2, 3]))]
    words = [opener for opener, _ in found] + [pick(AROUND) for _ in range(rng.randrange(4))]
    if rng.random() < 0.6:
        rng.shuffle(words)
        found.sort(key=lambda f: words.index(f[0]))
    out = pick(["RUN ", "RUN ", "COPY ", "ADD --link ", "ONBUILD RUN ", "onbuild copy ", "CMD ", "ONBUILD ENV a "]) + " ".join(words) + pick(["", " /x"])
    for _, name in found:
        for _ in range(rng.randrange(3)):
            out += "\n" + pick(["x", "\tx", "# x", "", name + " ", "\t" + name, "RUN y", "\\"])
        out += pick(["\n", "\n", "\n", "\r\n", "\n\t"]) + name
    return out


def instruction():
    if rng.random() < 0.2:
        return heredoc()
    if rng.random() < 0.3:
        return noise()
    out = [pick(COMMON if rng.random() < 0.7 else KEYWORDS)]
    while rng.random() < 0.3:
        out.append(pick(FLAGS))
    for _ in range(rng.randrange(5)):
        out.append(pick(WORDS))
    text = out[0]
    for word in out[1:]:
        text += pick(BLANKS) + word
    return text


def file():
    out = ""
    while rng.random() < 0.15:
        out += pick(["# escape=`", "# syntax=x", "#check=a", "# x", " # Escape = \\", "\ufeff", "", "# escape=x", "# syntax = ", "# syntax=b"])
        out += pick(["\n", "\n", "\r\n"])
    if rng.random() < 0.9:
        out += pick(["FROM scratch\n", "FROM a AS b\n", "ARG x\nFROM $x\n", "from a\n"])
    for _ in range(rng.randrange(1, 4)):
        out += (instruction() if rng.random() < 0.75 else pick(LINES)) + pick(ENDS)
        while rng.random() < 0.3:
            out += pick(LINES) + pick(ENDS)
    return out if rng.random() < 0.9 else out.rstrip("\n")


os.makedirs(folder, exist_ok=True)
for n in range(count):
    name = os.path.join(folder, str(n))
    with open(name, "w", encoding="utf-8", newline="") as f:
        f.write(file())
    print(name)
