"""Notes on the moves of a game record."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """What is written about a move."""

    comment: str = ""
    variations: tuple[tuple[int, ...], ...] = ()
    """Lines that begin with another move in place of this one, as actions; colours alternate from
    the move's own. CSA has none."""
    glyphs: tuple[int, ...] = ()
    """PGN's numeric annotation glyphs (PGN standard, section 10): 2 for a mistake."""
