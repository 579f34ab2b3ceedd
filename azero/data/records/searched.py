"""Games of self-play as a data set: their positions with the policies of the searches, for networks
that learn from fixed games (AGZ Figure 4, 'Neural network architecture comparison')."""

import itertools
from hashlib import sha256
from pathlib import Path

import numpy as np

from azero.console.standard_output import say
from azero.data.directory_lock import hold
from azero.data.records.dataset import Dataset
from azero.data.records.filters import GAMES, SPLITS, Filters, Fractions
from azero.data.run_files import CONFIG, board_directories, read_config
from azero.data.shard import Positions, read_replay, row_dtype, with_margin
from azero.games.game import Game
from azero.games.go.settings import GoConfig
from azero.games.settings import GameConfig
from azero.selfplay.targets import spans
from azero.selfplay.trajectory import HostArray

_FRACTIONS = Fractions(validation=0.05, test=0.05)
"""Games for validation and test (the paper gives none)."""


def export_searches(workdir: Path, out: Path, last: int | None = None) -> int:
    """Write the games in the replay of a run, or only its `last` ones, as a data set in a new
    directory. It has one board: of a run on several, the games on the others are left out, and a
    line on standard error says so.

    A game's split is decided by a hash of its moves, as for recorded games. Targets of auxiliary
    heads are left out.

    An export that was interrupted begins again. What `read_replay` leaves out is left out.

    Returns:
      The number of games.

    Raises:
      ValueError: it is a run of another game than GAMES, its games have komis of their own, there
        are no games, or the directory has a data set or a run, or another export writes there.
      StorageError: the disk is full or cannot be written to.
    """
    config = read_config(workdir)
    filters, game = _filters(workdir, config.game), config.game.build()
    shards = read_replay(workdir, game, config.learner.needs_auxiliary_targets, last)
    first = next(shards, None)
    if first is None:
        raise ValueError(f"{workdir} has no games in its replay")
    if (out / CONFIG).exists():
        raise ValueError(f"{out} is the directory of a run; use another directory")
    dataset = Dataset.create(out, filters, _FRACTIONS, has_searches=True)
    with hold(out):
        if dataset.is_unfinished:
            dataset.remove_shards()
        elif any(dataset.shards(split) for split in SPLITS):
            raise ValueError(f"{out} holds a data set; use another directory, or delete it")
        _report_other_boards(workdir, game)
        with dataset.filling():
            return sum(_write(dataset, *shard) for shard in itertools.chain([first], shards))


def _report_other_boards(workdir: Path, game: Game) -> None:
    """Name the boards that are left out, on standard error."""
    others = [path.name for size, path in board_directories(workdir).items() if size is not None]
    if others:
        size = "x".join(map(str, game.board_shape))
        say(
            f"azero: games on {', '.join(others)} are left out: a data set has one board, here "
            f"{size}"
        )


def _write(dataset: Dataset, path: Path, positions: Positions, games: HostArray) -> int:
    """Add the games of a shard to their splits, and return their number."""
    splits = _splits(positions.rows, games)
    for split in SPLITS:
        chosen = splits == split
        if chosen.any():
            names = [f"{path.name} game {number}" for number in games["number"][chosen]]
            part = _select(positions, games, chosen, dataset.slots)
            dataset.append_packed(split, part, games[chosen], names)
    return len(games)


def _filters(workdir: Path, rules: GameConfig) -> Filters:
    """Return the settings of the data set of a run's games."""
    if not isinstance(rules, GoConfig):
        if rules.name not in GAMES:
            raise ValueError(f"{workdir} plays {rules.name}; data sets are of {', '.join(GAMES)}")
        return Filters(rules.name, max_moves=rules.build().max_moves)  # type: ignore[arg-type]
    if rules.build().shows_komi:
        raise ValueError(
            f"the games of {workdir} have komis of their own (game.planes {rules.planes}), "
            "which a data set does not keep"
        )
    return Filters(
        size=rules.size, superko=rules.superko, suicide=rules.suicide, max_moves=rules.max_moves
    )


def _splits(rows: HostArray, games: HostArray) -> HostArray:
    """Return the split of each game, str[G]."""
    ends = np.cumsum(games["length"])
    return np.array(
        [
            _FRACTIONS.split_of(sha256(rows["action"][end - length : end].tobytes()).digest())
            for end, length in zip(ends, games["length"], strict=True)
        ]
    )


def _select(positions: Positions, games: HostArray, chosen: HostArray, room: int) -> Positions:
    """Return the positions of the games where bool[G] `chosen` holds, without auxiliary targets."""
    found = positions.rows[np.repeat(chosen, games["length"])]
    counts = found["policy_count"].astype(np.int64)
    words = positions.policy[spans(found["policy_start"].astype(np.int64), counts)]
    rows = np.zeros(len(found), row_dtype(found["frame"].shape[1]))
    for name in rows.dtype.names or ():
        rows[name] = found[name]
    rows["policy_start"] = np.cumsum(counts) - counts
    return with_margin(rows, words, room)
