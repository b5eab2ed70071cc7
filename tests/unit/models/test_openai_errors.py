"""The table of foreign exceptions."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx2
import openai
import pytest

from devall.core.errors import BadModelResponse, ModelError, ModelRefused, ModelUnavailable
from devall.models import transport
from devall.models.failures import Place, Said, retry_after
from devall.models.openai_errors import TABLE

PLACE = Place("openai", "m", "http://x/v1", "the variable API_KEY", "sk-1234", 300)
REQUEST = httpx2.Request("POST", "http://x/v1/chat/completions")


def exported() -> list[type[Exception]]:
    return [
        value
        for name, value in sorted(vars(openai).items())
        if isinstance(value, type) and issubclass(value, Exception) and not name.startswith("_")
    ]


def test_the_table_has_every_exception_that_openai_exports():
    assert len(exported()) > 15
    assert [kind.__name__ for kind in exported() if kind not in TABLE] == []


def test_the_table_has_every_transport_exception_that_can_pass_through():
    passing = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)
    kinds = [v for v in vars(httpx2).values() if isinstance(v, type) and issubclass(v, passing)]
    assert len(kinds) > 15
    assert all(any(base in TABLE for base in kind.__mro__) for kind in kinds)


def made(kind: type[Exception]) -> Exception:
    response = httpx2.Response(getattr(kind, "status_code", 500), request=REQUEST)
    match kind.__name__:
        case "APITimeoutError":
            return kind(REQUEST)
        case "APIConnectionError":
            return kind(request=REQUEST)
        case "APIResponseValidationError":
            return kind(response, None)
        case "APIError":
            return kind("text", REQUEST, body=None)
        case "OAuthError":
            return kind(response=response, body={"error": "invalid_grant"})
        case "LengthFinishReasonError":
            usage = openai.types.chat.ChatCompletion.model_construct(usage=None)
            return kind(completion=usage)
        case "ContentFilterFinishReasonError":
            return kind()
        case "WebSocketConnectionClosedError":
            return kind("closed", unsent_messages=[])
        case _ if issubclass(kind, openai.APIStatusError):
            return kind("text", response=response, body={"message": "said"})
        case _:
            return kind("text")


@pytest.mark.parametrize("kind", exported(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("begun", [False, True])
def test_every_exception_becomes_one_of_ours(kind, begun):
    ours = transport.translated(TABLE, made(kind), PLACE, begun=begun)
    assert isinstance(ours, ModelRefused | ModelUnavailable | BadModelResponse)
    assert "http://x/v1" in str(ours)


def test_other_exceptions_are_not_taken():
    assert transport.translated(TABLE, ValueError("ours"), PLACE, begun=False) is None
    assert transport.translated(TABLE, KeyError("ours"), PLACE, begun=False) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "a", "code": "c"}}, "a"),
        ({"message": "a"}, "a"),
        ([{"error": {"message": "a"}}], "a"),
        ({"error": "a"}, "a"),
        ({"detail": "a"}, "a"),
        ({"detail": [{"loc": ["x"]}]}, '[{"loc": ["x"]}]'),
        ({"odd": 1}, '{"odd": 1}'),
        ("a", "a"),
        (None, ""),
        (5, ""),
    ],
)
def test_an_error_object_is_read_whatever_its_form(body, message):
    assert Said.of(body).message == message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_the_time_to_wait_is_read_from_the_headers(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_long_foreign_text_is_cut():
    error = PLACE.error(ModelError, "x" * 5000)
    assert len(str(error)) < 600


def test_nothing_of_ours_imports_openai_before_a_model_is_needed():
    code = (
        "import sys, json\n"
        "import devall.models.providers, devall.models.toolmodes, devall.models.weights\n"
        "import devall.testing.chat_server, devall.testing.scripted_model, devall.agents.retry\n"
        "print(json.dumps([m for m in ('openai', 'httpx2', 'xllamacpp') if m in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
