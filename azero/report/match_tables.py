"""A run's matches as its report shows them: between its checkpoints, and with other players."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from azero.data.rows import Row
from azero.match.arena import EVALUATION
from azero.match.directory import MATCH, read_match, read_match_result
from azero.match.score import Tally
from azero.models.naming import is_network

DEPTHS = (f"*/{MATCH}", f"*/*/{MATCH}")
"""Where below a run's directory the directories of its matches are (`azero match --out`)."""

Colour = Literal["", "good", "bad"]
VERDICTS: dict[bool | None, tuple[str, Colour]] = {
    None: ("", ""),
    True: ("new best player", "good"),
    False: ("not passed", "bad"),
}
"""Whether a checkpoint passed the gate, in words."""


@dataclass(frozen=True)
class ShownMatch:
    """A match, from the side of its first player."""

    first: str
    second: str
    tally: Tally
    score: float
    low: float
    """Lower end of the 95% interval of the score, with `high`."""
    high: float
    note: str = ""
    """What qualifies the result: a verdict, repeated games, failures."""
    colour: Colour = ""
    """Of the note."""
    players: str = ""
    """Who the names stand for, in the words of `azero match`."""
    has_program: bool = False
    """Whether one of the two is another program."""

    @property
    def interval(self) -> str:
        """The 95% interval of the score in words."""
        return f"{100 * self.low:.1f} to {100 * self.high:.1f}%"


def checkpoint_matches(events: Sequence[Row]) -> list[ShownMatch]:
    """Return the matches between checkpoints among a run's events, newest first."""
    matches = []
    for row in [row for row in events if row.get("kind") == EVALUATION][::-1]:
        total = Tally(row["wins"], row["draws"], row["losses"])
        low, high = total.interval
        note, colour = VERDICTS[row.get("passed")]
        names = f"{row['iteration']:,}", f"{row['opponent_iteration']:,}"
        matches.append(ShownMatch(*names, total, total.score, low, high, note, colour))
    return matches


def program_matches(workdir: Path) -> list[ShownMatch]:
    """Return the matches whose directories are in that of the run, the latest first.

    Raises:
      ValueError: a file of a match is damaged; it is named.
    """
    paths = {path for pattern in DEPTHS for path in workdir.glob(pattern)}
    newest_first = sorted(paths, key=lambda path: (-path.stat().st_mtime, path))
    matches = [_stored_match(path.parent) for path in newest_first]
    return [match for match in matches if match is not None]


def _stored_match(directory: Path) -> ShownMatch | None:
    """Return the match in a directory; None if no game of it has ended."""
    match, result = read_match(directory), read_match_result(directory)
    if not result:
        return None
    first, second = match["players"]
    return ShownMatch(
        first["name"],
        second["name"],
        Tally(result["wins"], result["draws"], result["losses"]),
        result["score"],
        low=result["interval"][0],
        high=result["interval"][1],
        note="; ".join(_notes(match["command"], result)),
        players=f"{first['player']} against {second['player']}",
        has_program=not (is_network(first["player"]) and is_network(second["player"])),
    )


def _notes(command: Row, result: Row) -> list[str]:
    notes = []
    if side := command.get("first_side"):
        notes.append(f"the first player always {side}")
    if repeated := result.get("repeated_games"):
        notes.append(f"repeated games: {repeated}")
    notes += [f"{name}: {count} lost by failure" for name, count in result["failures"].items()]
    if verdict := result.get("sprt"):
        notes.append(str(verdict))
    return notes
