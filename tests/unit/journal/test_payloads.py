"""Values as the journal writes them: every value comes back, and large pieces stand once."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from devall.journal.payloads import INLINE, is_plain, pack, unpack

PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
texts = st.text(st.characters(), max_size=20) | st.text("ab\ud800\udfffé😀$", max_size=9)
# Two halves beside each other are the whole character, as JSON has it.
long_texts = st.builds(lambda text, times: text * times, texts, st.integers(1, 60)).filter(
    lambda text: not PAIR.search(text)
)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | long_texts
keys = texts.filter(lambda text: not PAIR.search(text)) | st.sampled_from(
    ["$piece", "messages", "a"]
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
)


def there_and_back(value):
    kept: dict[str, str] = {}
    text = pack(value, kept.__setitem__)
    for each in (text, *kept.values()):
        each.encode()  # what SQLite and files take
    return unpack(text, lambda name: json.loads(kept[name])), kept


@given(values)
def test_a_value_comes_back_as_it_was(value):
    found, _ = there_and_back(value)
    assert found == value


def test_what_looks_like_one_of_our_pieces_comes_back_as_it_was():
    for value in (
        {"$piece": "abc"},
        [{"$piece": "abc"}],
        {"value": {"$piece": "abc"}},
        {"$piece": {"$piece": "x" * 400}},
        "$piece",
        {"$piece": "abc", "more": "x" * 400},
    ):
        assert there_and_back(value)[0] == value


def test_a_conversation_that_grows_is_kept_message_by_message():
    messages = [{"role": "user", "content": f"{at} " * 200} for at in range(30)]
    kept: dict[str, str] = {}
    sizes = [len(pack({"messages": messages[:n]}, kept.__setitem__)) for n in range(1, 31)]
    assert len(kept) == 30
    assert max(sizes) < 30 * 100


def test_what_is_short_stands_where_it_is():
    kept: dict[str, str] = {}
    text = pack({"a": "x" * (INLINE - 2), "b": [1, None]}, kept.__setitem__)
    assert not kept
    assert is_plain(text)
    pack({"a": "x" * (INLINE - 1)}, kept.__setitem__)
    assert len(kept) == 1
