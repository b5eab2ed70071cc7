"""`python -m devall`: the command line."""

from __future__ import annotations

import gc

# What imports make stays to the end, and looking through it again and again takes an eighth of
# the start. `devall run` turns it on again when it begins.
gc.disable()

from devall.cli.main import main  # noqa: E402 - see above

__all__ = ["main"]

if __name__ == "__main__":
    main()
