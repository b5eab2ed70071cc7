"""`devall models`: weights for models that run in this process."""

from __future__ import annotations

from devall.cli.failures import Reporter, to_line
from devall.cli.streams import write_answer, write_note


def pull(name: str, *, as_json: bool = False, debug: bool = False) -> int:
    """Fetch a model's weights and print where they are; the exit code."""

    def work() -> int:
        from devall.models import weights

        place = str(weights.pull(name, write_note))
        write_answer(to_line({"name": name, "path": place}) if as_json else f"{place}\n")
        return 0

    return Reporter(as_json, debug).guard(work)


def show(*, as_json: bool = False, debug: bool = False) -> int:
    """Print the models that can be pulled, and where those are that were; the exit code."""

    def work() -> int:
        from devall.models import weights

        places = {known.name: str(path) for known, path in weights.installed()}
        if as_json:
            models = [
                {"name": name, "about": known.about, "size": known.size, "path": places.get(name)}
                for name, known in weights.CATALOGUE.items()
            ]
            write_answer(to_line({"models": models}))
            return 0
        for name, known in weights.CATALOGUE.items():
            size = f"{known.size / 1e6:.0f} MB"
            place = places.get(name) or f"not here: devall models pull {name}"
            write_answer(f"{name:12} {size:>8}  {place}\n{'':23}{known.about}\n")
        return 0

    return Reporter(as_json, debug).guard(work)
