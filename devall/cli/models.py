"""`devall models`: weights for models that run in this process."""

from __future__ import annotations

from devall.cli.failures import Reporter
from devall.cli.streams import write_answer, write_note


def pull(name: str, *, debug: bool = False) -> int:
    """Fetch a model's weights and print where they are; the exit code."""

    def work() -> int:
        from devall.models import weights

        write_answer(f"{weights.pull(name, write_note)}\n")
        return 0

    return Reporter(debug=debug).guard(work)


def show(*, debug: bool = False) -> int:
    """Print the models that can be pulled, and where those are that were; the exit code."""

    def work() -> int:
        from devall.models import weights

        places = {known.name: path for known, path in weights.installed()}
        for name, known in weights.CATALOGUE.items():
            size = f"{known.size / 1e6:.0f} MB"
            place = str(places[name]) if name in places else f"not here: devall models pull {name}"
            write_answer(f"{name:12} {size:>8}  {place}\n{'':23}{known.about}\n")
        return 0

    return Reporter(debug=debug).guard(work)
