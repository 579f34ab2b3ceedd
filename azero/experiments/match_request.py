"""What a match is to be. Nothing heavy is imported here."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class MatchRequest:
    """What a match is to be."""

    first: str
    """A player (see `azero.experiments.players`)."""
    second: str
    games: int
    """In all; an even number, half of them with each colour."""
    temperature_moves: int = 0
    """Moves at the start of a game, those of an opening included, that a network draws in proportion to the search's weights."""
    game: str | None = None
    """What is played; None is what the players play."""
    komi: float | None = None
    """Go: None is the komi of the first network, 7.5 where both are programs."""
    size: int | None = None
    """Go: points per side; None is the first network's, 19 where both are programs."""
    seed: int = 0
    openings: Path | None = None
    """A file of openings (see `read_openings`), taken in turn; each one is played with both colours."""
    opening_moves: int | None = None
    """Moves to take of each opening; None is all."""
    random_plies: int | None = None
    """Instead of a file: every pair of games begins with so many moves drawn at random from the legal ones."""
    start_positions: Path | None = None
    """Instead of openings: a file of positions, one a line (FEN, SFEN), taken in turn; each one is played with both colours."""
    first_side: Literal["stronger"] | None = None
    """Chess from positions: the first player always has the side with more material, and every game has a position of its own; None is both colours."""
    sprt: tuple[float, float] | None = None
    """Elo differences of a test that ends the match early (see `Sprt`)."""
    timeout: float = 60.0
    """Seconds a program may take over an answer, and a player over a move."""
    first_name: str | None = None
    """What records call the first player; None is a name made from it."""
    second_name: str | None = None
    workers: int = 1
    """Games at once, where a program takes part."""
    out: Path | None = None
    """Directory for the result and the games; a match that was interrupted goes on from it."""

    def __post_init__(self) -> None:
        if self.games < 2 or self.games % 2:
            raise ValueError(f"a match has an even number of games, half with each colour, not {self.games}")
        if self.workers < 1:
            raise ValueError(f"a match has at least one worker, not {self.workers}")
        if self.opening_moves is not None and self.openings is None:
            raise ValueError("opening-moves needs a file of openings")
        if self.random_plies is not None and (self.openings is not None or self.random_plies < 1):
            raise ValueError("random-plies is at least 1, and takes the place of a file of openings")
        if self.start_positions is not None and (self.openings is not None or self.random_plies is not None):
            raise ValueError("start-positions takes the place of openings and random-plies")
        if self.first_side is not None and (self.start_positions is None or self.sprt is not None):
            raise ValueError("first-side needs start-positions, and no sprt: a test takes pairs of games with both colours")

    @property
    def command(self) -> dict[str, Any]:
        """What decides the games: all but where they are written and how many are played at once."""
        facts = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in ("out", "workers")}
        for name in ("openings", "start_positions"):
            path: Path | None = facts[name]
            if path is not None:
                content = path.read_bytes() if path.is_file() else b""
                facts[name] = f"{path.name} (sha256 {hashlib.sha256(content).hexdigest()[:12]})"
        return facts
