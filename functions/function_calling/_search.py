"""Searches the files of its working directory; a program of its own.

A pattern can take for ever on a single line, and Python's matcher lets nothing else run
meanwhile. As a child process it can be ended. It uses the standard library only.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Any

MAX_FILE = 32 << 20
"""Bytes; a larger file is not searched."""
MAX_ANSWER = 1 << 20
"""Characters of all that is found together."""
MAX_LINE = 400
"""Characters that are shown of a line."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LINE_END = re.compile(r"\r\n|\r|\n")


def search(wanted: dict[str, Any]) -> dict[str, Any]:
    """What is found, as JSON."""
    flags = 0 if wanted["case_sensitive"] else re.IGNORECASE
    text = wanted["pattern"] if wanted["use_regex"] else re.escape(wanted["pattern"])
    try:
        pattern = re.compile(text, flags)
    except re.error as error:
        return {"error": f"{error.msg} at position {error.pos}"}
    globs = [compile_glob(each) for each in wanted["globs"]]
    excluded = [compile_glob(each) for each in wanted["exclude_globs"]]
    matches: list[dict[str, Any]] = []
    skipped: list[str] = []
    searched = size = 0
    root = os.open(".", _FOLDER)
    for path, folder, name in files(root, "", excluded, wanted["include_hidden"]):
        if globs and not any(glob.fullmatch(path) for glob in globs):
            continue
        lines = lines_of(folder, name)
        if lines is None:
            skipped.append(shown(path))
            continue
        searched += 1
        for number, line in enumerate(lines):
            for found in pattern.finditer(line):
                if len(matches) >= wanted["max_results"] or size > MAX_ANSWER:
                    return _answer(matches, searched, skipped, limited=True)
                before = lines[max(number - wanted["before_context"], 0) : number]
                after = lines[number + 1 : number + 1 + wanted["after_context"]]
                match: dict[str, Any] = {
                    "file": shown(path),
                    "line": number + 1,
                    "column": found.start() + 1,
                    "line_text": around(line, found.start()),
                    "before": [around(each, 0) for each in before],
                    "after": [around(each, 0) for each in after],
                }
                size += len(match["line_text"]) + sum(map(len, match["before"] + match["after"]))
                matches.append(match)
    return _answer(matches, searched, skipped, limited=False)


def _answer(
    matches: Sequence[Any], searched: int, skipped: Sequence[str], *, limited: bool
) -> dict[str, Any]:
    answer = {"matches": matches, "limited": limited, "searched_files": searched}
    if skipped:
        answer["skipped_files"] = len(skipped)
        answer["skipped"] = f"binary, or larger than {MAX_FILE >> 20} MiB: " + ", ".join(
            skipped[:10]
        )
    return answer


def files(
    folder: int, prefix: str, excluded: Sequence[re.Pattern[str]], hidden: bool
) -> Iterator[tuple[str, int, str]]:
    """Every regular file, sorted: its path, the descriptor of its folder, its name."""
    with os.scandir(folder) as found:
        names = sorted(each.name for each in found)
    for name in names:
        path = prefix + name
        if (name.startswith(".") and not hidden) or any(g.fullmatch(path) for g in excluded):
            continue
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                yield path, folder, name
            elif stat.S_ISDIR(mode):
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from files(inner, path + "/", excluded, hidden)
                finally:
                    os.close(inner)
        except OSError:  # gone in the meantime, or not readable
            continue


def lines_of(folder: int, name: str) -> list[str] | None:
    """The lines of a text file; None = it is none, or too large."""
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
            return None
        data = file.read(MAX_FILE + 1)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _split(data.decode("utf-16", "replace"))
    if b"\0" in data[:8192] or len(data) > MAX_FILE:
        return None
    try:
        return _split(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return _split(data.decode("gb18030" if is_chinese(data) else "cp1252", "replace"))


def _split(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def is_chinese(data: bytes) -> bool:
    """Whether a file that is not UTF-8 is in GB 18030 rather than in Latin letters.

    What is not ASCII comes in the pairs of GB 2312 then, and somewhere two pairs stand together;
    accented letters rarely stand by twos, and hardly ever by fours.
    """
    try:
        # Incremental: a head of a file may end within a pair.
        codecs.getincrementaldecoder("gb2312")().decode(data)
    except UnicodeDecodeError:
        return False
    return re.search(rb"[\x80-\xff]{4}", data) is not None


def around(line: str, column: int) -> str:
    """A line, or that part of a long one which holds a column."""
    if len(line) <= MAX_LINE:
        return line
    start = max(0, min(column - MAX_LINE // 3, len(line) - MAX_LINE))
    end = start + MAX_LINE
    return ("..." if start else "") + line[start:end] + ("..." if end < len(line) else "")


def shown(path: str) -> str:
    """A path as JSON can write it."""
    return os.fsencode(path).decode("utf-8", "replace")


def compile_glob(glob: str) -> re.Pattern[str]:
    """A glob as a pattern of whole paths.

    `*` and `?` stay within a name, `**` does not; a glob without a slash looks at the name in
    any folder; one that ends with a slash means all in that folder.
    """
    glob = glob.removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    elif "/" not in glob:
        glob = "**/" + glob
    found: list[str] = []
    at = 0
    while at < len(glob):
        rest = glob[at:]
        if rest.startswith("**/"):
            found.append("(?:.*/)?")
            at += 3
        elif rest.startswith("**"):
            found.append(".*")
            at += 2
        elif rest[0] == "*":
            found.append("[^/]*")
            at += 1
        elif rest[0] == "?":
            found.append("[^/]")
            at += 1
        elif rest[0] == "[" and (end := rest.find("]", 2)) > 0:
            inner = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
            found.append(f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]")
            at += end + 1
        else:
            found.append(re.escape(rest[0]))
            at += 1
    try:
        return re.compile("".join(found), re.DOTALL)
    except re.error:  # an impossible range such as [z-a]
        return re.compile(re.escape(glob))


if __name__ == "__main__":
    json.dump(search(json.loads(sys.argv[1])), sys.stdout)
