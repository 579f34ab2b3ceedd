"""Arguments of `azero data` and `azero eval`. Nothing heavy is imported here, because the command
line reads this module at every start.

These classes check nothing themselves, because the parser would show their errors under its
internal names. The functions that carry a request out check it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from azero.data.records.filters import Filters, Fractions


@dataclass(frozen=True)
class ImportRequest:
    """Turn files of recorded games into training positions. The same command continues where it
    stopped, or adds new files."""

    paths: Positional[tuple[Path, ...]]
    """Files (.sgf, .pgn, .csa, .kif, .ki2, also compressed or in .zip and .tar.gz; one game or
    many) and directories of such files."""
    out: Path
    """The directory of the data set."""
    filters: Annotated[Filters, tyro.conf.arg(name="")] = field(default_factory=Filters)
    fractions: Annotated[Fractions, tyro.conf.arg(name="")] = field(default_factory=Fractions)


@dataclass(frozen=True)
class ShowRequest:
    """Print a summary of a data set, and some of its positions."""

    directory: Positional[Path]
    """The directory of the data set."""
    split: Literal["train", "validation", "test"] = "train"
    """The part that positions are drawn from."""
    positions: int = 2
    """Number of positions."""
    seed: int = 0
    """Random seed of the positions."""


@dataclass(frozen=True)
class ExportRequest:
    """Write the games of a run's replay, or of a match, to one file for other programs: SGF of Go,
    PGN of chess, CSA of shogi; or those of a run's replay as a data set with their searches' policy
    targets, which supervised experiments learn from (AGZ Figure 4)."""

    directory: Positional[Path]
    """The run's directory, or that of a match (azero match --out)."""
    out: Path
    """The file (.sgf .pgn .csa); any other name is the directory of a data set (Go, chess,
    shogi)."""
    last: int | None = None
    """Only this many of the newest games."""


@dataclass(frozen=True)
class JosekiRequest:
    """Count corner sequences in games; rotations, reflections and colours are merged (AGZ, Figure
    5)."""

    games: Positional[tuple[Path, ...]]
    """Files of records on square boards of one size, oldest games first (.sgf .sgf.gz .zip
    .tar.gz)."""
    only: str = ""
    """Take only games whose name (path, folder in an archive, number) has this text in it."""
    sequence: tuple[str, ...] = ()
    """Sequences such as "Q16 O17 R14"; without any, the most common ones are listed."""
    length: int = 5
    """Moves of the listed sequences."""
    top: int = 15
    """Number of listed sequences."""
    parts: int = 4
    """The games, in their order, are cut into this many parts of equal size, to see a change over
    time."""
    by_date: bool = False
    """Order the games by the dates in the records; those without one are left out."""
    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class AccuracyRequest:
    """Compare networks with the moves and results of recorded games: top-1 and top-5 accuracy and
    value error, by move number, with 95% intervals."""

    checkpoint: tuple[str, ...]
    """Networks that ship (go9), directories of runs, or with an exported network
    (RUN/checkpoint)."""
    games: Path
    """Games that the networks did not learn from (.sgf, .pgn, .csa, .kif, .ki2, also compressed
    or in .zip and .tar.gz)."""
    iteration: tuple[int, ...] = ()
    """Of one run: these checkpoints, in place of the newest."""
    every_checkpoint: bool = False
    """Of one run: all checkpoints that it keeps (checkpoint.keep-every)."""
    plot: Path | None = None
    """With several checkpoints of a run: an image of accuracy and value error over the iterations
    (AGZ, Figures 3b and 3c)."""
    number: int = 200
    """Games that are evaluated, evenly spaced over the file; 0 is all."""
    symmetries: bool | None = None
    """Take the mean over all symmetries of a position; None is as the run's
    evaluation.average-symmetries says (the paper does not say)."""
    paper: bool = False
    """Also print the published figures next to ours."""
    json: bool = False
    """Print one JSON object instead of tables."""
