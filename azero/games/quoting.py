"""Quoting input in messages, shortened to fit a line. Host side only."""

from __future__ import annotations

LONGEST = 300
"""Characters; a position or a move of any format here is shorter."""


def shorten(text: object) -> str:
    """Return `text` with its middle left out if it is long."""
    whole = str(text)
    return (
        whole if len(whole) <= LONGEST else f"{whole[: LONGEST // 2]} ... {whole[-LONGEST // 2 :]}"
    )
