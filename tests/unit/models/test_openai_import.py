from __future__ import annotations

import subprocess
import sys

IMPORT = "import sys; import devall.models.openai_client"


def printed(*statements: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(statements)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_types_of_answers_are_not_imported_for_a_run():
    assert printed(IMPORT, "print('openai.types.batch' in sys.modules)") == "False"


def test_types_can_be_imported_as_ever_afterwards():
    printed(
        IMPORT,
        "from openai.types.chat import ChatCompletion",
        "from openai.types.responses import *",
        "import openai",
        "assert ChatCompletion.model_validate and Response and openai.types.Batch",
        "from openai.resources.chat.completions import AsyncCompletions",
    )


def test_a_type_that_does_not_exist_is_an_error():
    code = [
        "import openai",
        "try: openai.types.Nonsense",
        "except AttributeError as error: print(error)",
    ]
    assert "Nonsense" in printed(IMPORT, *code)


def test_two_threads_may_ask_for_the_first_type_at_once():
    printed(
        IMPORT,
        "from concurrent.futures import ThreadPoolExecutor as Pool",
        "def ask(_):",
        "    from openai.types.responses import Response",
        "    from openai.types import Batch",
        "    return Response, Batch",
        "with Pool(8) as pool: assert len(set(pool.map(ask, range(8)))) == 1",
    )


def test_what_was_imported_before_stays_as_it_is():
    assert printed("import openai", "before = openai.types.Batch", IMPORT, "print(before)")
