from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.telemetry.redaction import (
    MASK,
    Redactor,
    environment_secrets,
    is_secret_name,
    without_named,
)

KEY = "sk-live-1234567890abcdef"
ODD = "pä\"ss\\w/ö r&d'+="


def test_a_secret_is_replaced_wherever_it_stands_in_a_text():
    assert Redactor([KEY]).text(f"a {KEY}, b{KEY}c") == "a ***, b***c"


def test_a_text_without_secrets_is_the_same_object():
    text = "nothing " * 100
    assert Redactor([KEY]).text(text) is text
    assert Redactor().text(text) is text


@pytest.mark.parametrize(
    "form",
    [
        ODD,
        quote(ODD, safe=""),
        quote(ODD),
        quote_plus(ODD),
        re.sub("%..", lambda found: found[0].lower(), quote(ODD, safe="")),
        json.dumps(ODD)[1:-1],
        json.dumps(ODD, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps({"k": ODD})),
        json.dumps(json.dumps(json.dumps([ODD]))),
        repr(ODD),
        html.escape(ODD),
        base64.b64encode(ODD.encode()).decode(),
        base64.urlsafe_b64encode(ODD.encode()).decode(),
    ],
)
def test_the_forms_in_which_programs_pass_a_secret_on_are_found(form: str):
    clean = Redactor([ODD]).text(f"before {form} after")
    assert MASK in clean
    for piece in ("ss\\\\w", "ss%5C", "ss%5c", "ss\\w", form):
        assert piece not in clean


@pytest.mark.parametrize("before", ["", "x", "xy", "user:"])
@pytest.mark.parametrize("after", ["", "z", "zz"])
def test_base64_is_found_whatever_stands_before_and_after(before: str, after: str):
    encoded = base64.b64encode(f"{before}{KEY}{after}".encode()).decode()
    clean = Redactor([KEY]).text(f"Basic {encoded}")
    assert MASK in clean
    assert len(clean) < len(f"Basic {encoded}") - 20


def test_overlapping_secrets_leave_no_tail():
    assert Redactor(["abcdef", "defghi", "abcd"]).text("1abcdefghi2 abcd3") == "1***2 ***3"


def test_the_token_of_an_authorization_header_is_a_secret_by_itself():
    redactor = Redactor([f"Bearer {KEY}"])
    assert redactor.text(f"echo: {KEY}") == "echo: ***"
    password = base64.b64encode(b"ann:open-sesame").decode()
    assert Redactor([f"Basic {password}"]).text("it was open-sesame") == "it was ***"


def test_each_long_line_of_a_private_key_is_a_secret():
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "-----END KEY-----"]
    assert lines[1] not in Redactor(["\n".join(lines)]).text(f"log: {lines[1]}")


def test_a_line_end_behind_a_secret_hides_it_from_nobody():
    assert Redactor([KEY + "\n"]).text(f"key {KEY}.") == "key ***."


def test_a_short_secret_is_replaced_only_as_the_whole():
    redactor = Redactor(["abc"])
    assert redactor.text("abc") == MASK
    assert redactor.text("abc def") == "abc def"
    assert redactor.value({"a": "abc", "b": ["xabc", "abc"]}) == {"a": MASK, "b": ["xabc", MASK]}
    assert redactor.data(b"abc") == MASK.encode()
    assert redactor.data(b"abcd") == b"abcd"


def test_json_values_are_cleaned_in_texts_keys_and_numbers():
    redactor = Redactor([KEY, "987654"])
    value = {"list": [f"<{KEY}>", 987654, 12, None, True], f"k{KEY}": 1.5}
    assert redactor.value(value) == {"list": ["<***>", MASK, 12, None, True], "k***": 1.5}


def test_what_stands_under_a_secrets_name_is_replaced_without_being_known():
    value = {
        "Authorization": "Bearer x",
        "headers": {"X-Api-Key": "1", "accept": "json"},
        "OPENAI_API_KEY": "k",
        "properties": {"api_key": {"type": "string"}},
        "api_key": None,
        "input_tokens": 5,
        "token": "word",
    }
    assert Redactor().value(value) == {
        "Authorization": MASK,
        "headers": {"X-Api-Key": MASK, "accept": "json"},
        "OPENAI_API_KEY": MASK,
        "properties": {"api_key": {"type": "string"}},
        "api_key": None,
        "input_tokens": 5,
        "token": "word",
    }


@pytest.mark.parametrize("name", ["monkey", "keyboard", "max_tokens", "author", "tokenizer", 5])
def test_names_that_only_look_like_a_secrets_are_left(name: object):
    assert not is_secret_name(name)


def test_bytes_are_cleaned_like_texts():
    redactor = Redactor([KEY])
    data = b"\x00" + KEY.encode() + b"\xff"
    assert redactor.data(data) == b"\x00***\xff"
    assert redactor.data(b"\x00") == b"\x00"


def test_named_values_in_foreign_texts_are_replaced_and_references_left():
    text = '  api_key: sk-1  # Authorization: Bearer abc.def, x-api-key="q"} api_key: ${API_KEY}'
    assert without_named(text) == (
        '  api_key: ***  # Authorization: ***, x-api-key="***"} api_key: ${API_KEY}'
    )


def test_only_variables_named_like_keys_are_secrets_of_the_environment():
    environment = {
        "API_KEY": "a1",
        "GEMINI_API_KEY": "b2",
        "DB_PASSWORD": "c3",
        "TOKENIZERS_PARALLELISM": "false",
        "KEYBOARD": "us",
        "MY_TOKEN": "",
    }
    assert environment_secrets(environment) == {"a1", "b2", "c3"}


def test_a_stream_never_shows_the_beginning_of_a_secret():
    redactor = Redactor([KEY])
    text = f"the key is {KEY} and no other"
    for size in range(len(text)):
        assert KEY[:4] not in redactor.settled(text[:size])
    assert redactor.settled(text) == "the key is *** and no other"


def test_short_values_may_stand_in_an_answer():
    redactor = Redactor(["none", KEY])
    assert redactor.at_least(8).text(f"none of {KEY}") == "none of ***"


def test_a_redactor_does_not_show_its_secrets():
    assert KEY not in repr(Redactor([KEY]))


@given(
    st.lists(st.text(min_size=4, max_size=12), min_size=1, max_size=4),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_no_secret_survives_in_a_json_line(secrets: list[str], before: str, after: str):
    redactor = Redactor(secrets)
    for secret in secrets:
        if len(secret.strip()) < 4 or set(secret) <= {"*"} or secret in "***":
            continue
        value = {"text": before + secret + after, "nested": json.dumps([secret])}
        assert redactor.may_be_in(json.dumps(value, ensure_ascii=False))
        clean = redactor.value(value)
        for part in json.loads(json.dumps(clean)).values():  # a key that is one goes as well
            assert secret not in part.replace(MASK, "\0")
