"""Texts for parsers: valid ones, changed ones, words of the format in any order, and any bytes."""

from __future__ import annotations

import resource
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st


@st.composite
def _changed(draw: st.DrawFn, valid: Sequence[str], words: Sequence[str]) -> str:
    """A valid text with some of it cut out, doubled, or replaced."""
    text = draw(st.sampled_from(list(valid)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = (
            text[:start]
            + draw(
                st.one_of(
                    st.sampled_from(list(words)),
                    st.text(max_size=3),
                    st.just(text[start:end] * 2),
                    st.just(""),
                )
            )
            + text[end:]
        )
    return text


def texts(valid: Sequence[str], words: Sequence[str]) -> st.SearchStrategy[str]:
    """Texts that are nearly right, or nothing at all."""
    mixed = st.lists(st.one_of(st.sampled_from(list(words)), st.text(max_size=4)), max_size=30).map(
        "".join
    )
    repeated = st.builds(
        lambda before, unit, count, after: before + unit * count + after,
        mixed,
        mixed,
        st.sampled_from([3, 50]),
        mixed,
    )
    return st.one_of(
        _changed(valid, words),
        mixed,
        repeated,
        st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")),
    )


def outcome(
    parse: Callable[[], Any], error: type[Exception] | tuple[type[Exception], ...] = ValueError
) -> Any:
    """Return what `parse` returns, or None where it raises the documented error, in one line of a
    bearable length. Any other exception is a failure."""
    try:
        return parse()
    except error as problem:
        assert (
            "\n" not in str(problem) and "\r" not in str(problem) and 0 < len(str(problem)) < 2000
        ), repr(str(problem)[:300])
        return None


@contextmanager
def bounds(seconds: float, megabytes: float) -> Iterator[None]:
    """At most so many seconds of this process, and so much memory on top of what it had."""
    began, usage = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    took, grown = (
        time.process_time() - began,
        (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - usage) / 1024,
    )
    assert took < seconds, f"{took:.1f} s"
    assert max(peak / 2**20, grown) < megabytes, f"{peak / 2**20:.0f} MiB, grown by {grown:.0f}"
