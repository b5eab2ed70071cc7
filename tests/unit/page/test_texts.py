from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from devall.page.texts import LONGEST, SHORTEST, Texts, clean, pretty


def test_control_characters_are_seen_and_do_nothing():
    assert clean("a\x1b[31mb\x00\x7f\x9b\r\nc\td") == "a␛[31mb␀␡\ufffd\nc\td"


def test_text_cannot_be_made_to_stand_in_another_order():
    assert clean("evil\u202egnp.exe") == "evil\ufffdgnp.exe"


@given(st.text())
def test_clean_text_can_be_written_and_is_clean(text):
    found = clean(text)
    found.encode("utf-8")
    assert clean(found) == found


@given(
    st.lists(st.text(max_size=400).map(lambda each: each * 40), max_size=30),
    st.integers(3000, 60000),
)
def test_all_texts_together_stay_within_their_bound(parts, most):
    texts = Texts()
    every = [texts.add(part) for part in parts]
    texts.settle(most)
    size = sum(len(str(escape(each.shown)).encode()) for each in every)
    assert size <= max(2 * most, len(every) * SHORTEST * 6)


def test_only_the_longest_texts_are_cut():
    texts = Texts()
    short, long = texts.add("a" * 500), texts.add("b" * 50_000)
    texts.settle(20_000)
    assert short.left_out == 0
    assert long.left_out == 50_000 - len(long.shown) > 0
    assert texts.cut == 1


def test_no_text_is_cut_where_there_is_room():
    texts = Texts()
    text = texts.add("x" * LONGEST)
    assert texts.settle() == LONGEST
    assert not text.left_out


def test_a_secret_is_taken_out_before_a_text_is_cut():
    texts = Texts(lambda text: text.replace("sk-secret-key", "***"))
    assert texts.line("the key is sk-secret-key!", 17) == "the key is ***!"
    assert texts.add("sk-secret-key").whole == "***"


def test_json_stands_on_one_line_where_it_fits():
    assert pretty({"a": [1, 2]}) == '{"a": [1, 2]}'
    assert pretty({"a": "x" * 90}).count("\n") == 2
