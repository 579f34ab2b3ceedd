"""Overlays, settings and files of a run as anybody may write them: read, or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hostile_text import outcome, texts
from hypothesis import given
from hypothesis import strategies as st

from azero.config import load_overlay, to_dict
from azero.settings import Config, from_dict

TOML = [
    "[search]\nnum_simulations = 64\n[learner]\nlearning_rate = [[0, 0.1]]\n",
    "[about]\nexperiments = ['go9']\n[run]\nseed = 3\ncoordinator = 'a:1'\n",
]
TOML_WORDS = [
    "[",
    "]",
    "=",
    "\n",
    '"',
    "'",
    "search",
    ".",
    "num_simulations",
    "1",
    "-1",
    "1e999",
    "nan",
    "true",
    "[[",
    "{",
    "}",
    "#",
    "seed",
    "run",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_any_overlay_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"

    @given(
        texts(TOML, TOML_WORDS).map(lambda text: text.encode("utf-8", errors="replace"))
        | st.binary(max_size=100)
    )
    def check(content: bytes) -> None:
        path.write_bytes(content)
        outcome(lambda: load_overlay(path, Config()))

    check()


@pytest.mark.parametrize(
    "content",
    [b"a = " + b"[" * 30_000, b"a." * 100_000 + b"b = 1", b"[" + b"a." * 50_000 + b"b]", b"\xff"],
)
def test_a_deep_overlay_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "overlay.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"overlay\.toml") as error:
        load_overlay(path, Config())
    assert "\n" not in str(error.value) and len(str(error.value)) < 1000


@given(st.data())
def test_any_value_of_a_setting_is_taken_or_refused_in_one_line(data: st.DataObject) -> None:
    settings = to_dict(Config())
    table = data.draw(st.sampled_from(sorted(settings)))
    key = (
        data.draw(st.sampled_from(sorted(settings[table])))
        if isinstance(settings[table], dict)
        else None
    )
    value = data.draw(JSON)
    changed = {table: {key: value}} if key else {table: value}
    read = outcome(lambda: from_dict(changed, source="checkpoint 3"))
    if read is not None:
        assert from_dict(json.loads(json.dumps(to_dict(read)))) == read
