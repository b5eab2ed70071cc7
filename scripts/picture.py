"""Makes docs/demo.svg: what a terminal shows after `make demo`, taken from a real run."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PROJECT = Path(__file__).resolve().parents[1]
PICTURE = PROJECT / "docs" / "demo.svg"
COLUMNS = 100

_CONTROL = re.compile(r"\x1b\[(\d*)(?:;\d+)*([A-Za-z])|\x1b\[\?\d+[hl]|\r|\n")


def recorded(command: list[str]) -> str:
    """All that the command writes to its terminal.

    Raises:
        SystemExit: the command failed.
    """
    written = bytearray()

    def take(terminal: int) -> bytes:
        piece = os.read(terminal, 4096)
        written.extend(piece)
        return piece

    os.environ |= {"COLUMNS": str(COLUMNS), "LINES": "40", "TERM": "xterm-256color"}
    status = os.waitstatus_to_exitcode(pty.spawn(command, take))
    if status:
        sys.exit(status)
    return written.decode()


def screen(written: str) -> list[str]:
    """The lines that stay: what is erased or written over is gone, colours are kept."""
    lines, row, place = [""], 0, 0
    for control in _CONTROL.finditer(written):
        lines[row] += written[place : control.start()]
        place = control.end()
        match control[0], control[2]:
            case "\n", _:
                row += 1
                lines.extend([""] * (row + 1 - len(lines)))
            case _, "A":
                row = max(row - int(control[1] or 1), 0)
            case _, "K":
                lines[row] = ""
            case _, "m":
                lines[row] += control[0]
            case _:
                pass
    lines[row] += written[place:]
    return lines


def main() -> None:
    """Run the demo and draw what it leaves on the terminal."""
    shown = screen(recorded([sys.executable, str(PROJECT / "scripts" / "demo.py")]))
    text = "\n".join(["$ make demo", *shown]).replace(f"{PROJECT}{os.sep}", "").rstrip()
    text = text.replace(str(Path.home()), "~")
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, force_terminal=True, file=nowhere)
        console.print(Text.from_ansi(text))
    PICTURE.parent.mkdir(exist_ok=True)
    # The viewer's own monospaced font: a picture in a repository loads nothing from elsewhere.
    drawn = re.sub(
        r"@font-face\s*\{.*?\}\s*", "", console.export_svg(title="DevAll"), flags=re.DOTALL
    )
    PICTURE.write_text(re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE), encoding="utf-8")


if __name__ == "__main__":
    main()
