"""Tunes settings of a player by Gaussian-process optimisation, with a match for each trial.

DIR/tuning.json    the command, and the winner with its confirmation match
DIR/trials.jsonl   one row per finished trial
DIR/trial-000/     its match, as of `azero match --out`
DIR/confirmation-TRIALS/  the match of the winner of so many trials
DIR/posterior.png  what the process predicts for each setting
"""

import dataclasses
import io
import json
import queue
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from azero.config import convert
from azero.console.tables import count_of
from azero.console.terminal import make_console
from azero.data.directory_lock import hold
from azero.data.rows import Row, RowFile, read_rows, replace_text, to_plain
from azero.match.directory import MATCH, match_players, read_match_games, with_relative_paths
from azero.match.games import MatchSummary, failure_notes
from azero.match.matches import AbsentPlayerError, play_match
from azero.match.request import MatchRequest, match_of
from azero.match.score import NORMAL_95, Tally
from azero.match.sides import match_rules, read_sides
from azero.match.tuning.optimiser import Observation, Posterior, check_installed, elo_of, propose
from azero.match.tuning.request import TuneRequest
from azero.match.tuning.space import Parameter, parse_parameter, point_of, values_of, with_values
from azero.players.searches import all_constants
from azero.players.specs import parse_thinker

SETTINGS, TRIALS, PLOT = "tuning.json", "trials.jsonl", "posterior.png"
_WHOLE = ("visits", "threshold", "policy_batch")
"""Options in players' names that are whole numbers and no settings of a search."""
_PLAYER, _OPPONENT = "the player", "the opponent"
_CONFIRMATION_SEED = 1_000_003
"""Added to the seed for the openings of the confirmation, which no trial has."""

PlayFn = Callable[[MatchRequest, Console, dict[str, dict[str, Any]]], MatchSummary]
"""As `play_match`."""
PlotFn = Callable[[Path, Sequence[Parameter], Sequence[Observation], Posterior, np.ndarray], None]
"""Saves a plot of the process, of all observations and of the winner float[D]."""


class Tuned(NamedTuple):
    """What a tuning found."""

    values: tuple[float, ...]
    """The winner's settings."""
    player: str
    """The player's name with them."""
    elo: float
    """Mean of the process there, against the opponent."""
    deviation: float
    """Its standard error."""
    confirmation: Tally | None
    """The winner's games against the opponent; None without."""
    failures: dict[str, int]
    """Games of the trials lost by a crash, an illegal move or a timeout, by player."""


def tune(
    request: TuneRequest,
    save_plot: PlotFn,
    console: Console | None = None,
    play: PlayFn = play_match,
) -> Tuned:
    """Play what is missing of the trials and of the confirmation, save the plot, and return the
    winner.

    A trial that was interrupted is played again from its first game, with the same seed, so that a
    tuning that was stopped ends as one that was not (with one worker, and without a clock).

    Raises:
      ValueError: a parameter or a player is not understood, the directory holds another tuning,
        scikit-learn is not installed, or a player never made a move in a trial.
      KeyboardInterrupt: it was stopped; the message says what is kept.
    """
    console = console or make_console()
    check_installed()
    parse_thinker(request.player)  # programs have settings of their own
    whole = [name for name, kind in all_constants().items() if kind is int]
    space = [parse_parameter(text, (*whole, *_WHOLE)) for text in request.parameter]
    names = [parameter.name for parameter in space]
    if len(set(names)) < len(names):
        raise ValueError(f"--parameter {' '.join(request.parameter)}: each has a name of its own")
    for end in (0.0, 1.0):  # an error in the command leaves no directory
        player = with_values(request.player, space, values_of(space, np.full(len(space), end)))
        match = _match(request, player, ("first", "second"), request.games, 0, request.out)
        match_rules(match, read_sides(match, _known_players(request, match)))
    request.out.mkdir(parents=True, exist_ok=True)
    with hold(request.out):
        _check_same(request)
        trials = _Trials(request, space, console, play)
        try:
            trials.run()
            found = trials.observations(request.trials)
            failures = trials.failures(request.trials)
            return _conclude(request, space, found, failures, save_plot, console, play)
        except (KeyboardInterrupt, AbsentPlayerError) as error:
            stop = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else ValueError
            why = "stopped" if stop is KeyboardInterrupt else error
            kept = count_of(len(trials.rows), "finished trial")
            raise stop(
                f"{why}; {request.out} has {kept}, and the same command continues the tuning"
            ) from None


def _check_same(request: TuneRequest) -> None:
    """Write down the command, or check that the directory has it. One without a finished trial may
    become another tuning.

    Raises:
      ValueError: it has another one, and what differs is named; or the file is damaged.
    """
    path, here = request.out / SETTINGS, to_plain(request.command)
    if path.exists():
        try:
            facts = json.loads(path.read_bytes())
            there = dict(facts["command"])
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{path} is damaged ({error!r}); choose another directory, or remove that file "
                "to continue with the settings given here"
            ) from error
        then = convert(facts.get("from_here", {}), dict, "from_here", str(path))
        moved = [name for name, text in _from_here(request).items() if then.get(name) == text]
        names = [name for name in here if here[name] != there.get(name) and name not in moved]
        if names and read_rows(request.out / TRIALS):
            differs = "; ".join(
                f"{name}: there {there.get(name)}, here {here[name]}" for name in names
            )
            raise ValueError(
                f"{request.out} holds another tuning ({differs}); choose another directory"
            )
        if not names:
            return
        for begun in request.out.glob("trial-*"):
            shutil.rmtree(begun)
    _write(request, {})


def _from_here(request: TuneRequest) -> dict[str, str]:
    """Return the players seen from the directory, which is the same where it has moved with
    theirs."""
    players = {"player": request.player, "against": request.against}
    return {name: with_relative_paths(request.out, text) for name, text in players.items() if text}


def _write(request: TuneRequest, result: dict[str, Any]) -> None:
    facts = {"command": request.command, "from_here": _from_here(request), "result": result}
    replace_text(request.out / SETTINGS, json.dumps(to_plain(facts), indent=2) + "\n")


class _Trials:
    """The trials of a tuning: those that are stored, and those that are being played."""

    def __init__(
        self, request: TuneRequest, space: Sequence[Parameter], console: Console, play: PlayFn
    ) -> None:
        self._request, self._space, self._console, self._play = request, space, console, play
        self._path = request.out / TRIALS
        self.rows = _read_trials(self._path, space, request.games)

    def observations(self, before: int) -> list[Observation]:
        """Return the results of the trials with numbers below `before`."""
        return [
            Observation(point_of(self._space, row["values"]), *elo_of(_tally(row)))
            for row in self._rows(before)
        ]

    def failures(self, before: int) -> dict[str, int]:
        """Return the games that failures lost in the trials with numbers below `before`."""
        return dict(sum((Counter(_failures(row)) for row in self._rows(before)), Counter[str]()))

    def _rows(self, before: int) -> list[Row]:
        return [self.rows[number] for number in sorted(self.rows) if number < before]

    def run(self) -> None:
        """Play what is missing, round by round."""
        at_once, trials = self._request.at_once, self._request.trials
        with RowFile(self._path) as file:
            for first in range(0, trials, at_once):
                numbers = range(first, min(first + at_once, trials))
                proposals = self._propose(first, numbers)
                missing = {n: proposals[n] for n in numbers if n not in self.rows}
                for row in self._play_all(missing):
                    file.append(row)
                    self.rows[row["number"]] = row
                    self._console.print(self._describe(row), soft_wrap=True, highlight=False)

    def _propose(self, first: int, numbers: range) -> dict[int, tuple[float, ...]]:
        """Return the settings of a round, which depend on the rounds before it alone."""
        if all(number in self.rows for number in numbers):
            return {}
        known, found = self.observations(first), dict[int, tuple[float, ...]]()
        for number in numbers:
            waiting = [point_of(self._space, values) for values in found.values()]
            point = propose(
                known,
                waiting,
                number,
                self._request.first_trials,
                len(self._space),
                self._request.seed,
            )
            found[number] = values_of(self._space, point)
        return found

    def _play_all(self, missing: dict[int, tuple[float, ...]]) -> Iterator[Row]:
        """Yield the rows of trials as they end, all of them played at once."""
        if len(missing) <= 1:
            yield from (self._trial(number, values) for number, values in missing.items())
            return
        ended: queue.SimpleQueue[Row | BaseException] = queue.SimpleQueue()

        def work(number: int, values: tuple[float, ...]) -> None:
            try:
                ended.put(self._trial(number, values))
            except BaseException as error:  # raised where the trials are awaited
                ended.put(error)

        for item in missing.items():
            threading.Thread(target=work, args=item, daemon=True).start()
        for _ in missing:
            outcome = ended.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome

    def _trial(self, number: int, values: tuple[float, ...]) -> Row:
        """Play one trial from its first game, and return its row."""
        directory = self._request.out / f"trial-{number:03d}"
        shutil.rmtree(directory, ignore_errors=True)
        player = with_values(self._request.player, self._space, values)
        names = f"trial {number}", _OPPONENT
        # Programs get the seed plus the number of the game, so that no two trials share one.
        games = self._request.games
        request = _match(self._request, player, names, games, 1 + number * games, directory)
        quiet = make_console(io.StringIO())
        played = self._play(request, quiet, _known_players(self._request, request))
        return {
            "number": number,
            "values": list(values),
            **dataclasses.asdict(played.result.total),
            "failures": Counter(
                _OPPONENT if game.failed == _OPPONENT else _PLAYER
                for game in read_match_games(directory)
                if game.failed
            ),
        }

    def _describe(self, row: Row) -> str:
        pairs = zip(self._space, row["values"], strict=True)
        words = ", ".join(f"{parameter.name} {value:g}" for parameter, value in pairs)
        tally = _tally(row)
        elo, deviation = elo_of(tally)
        result = (
            f"trial {row['number'] + 1} of {self._request.trials}: {words}: {tally}, "
            f"{elo:+z.0f} Elo (+- {deviation:.0f})"
        )
        return "; ".join([result, *failure_notes(_failures(row))])


def _read_trials(path: Path, space: Sequence[Parameter], games: int) -> dict[int, Row]:
    """Return the finished trials by number.

    Raises:
      ValueError: a row is damaged, or holds no trial of these parameters; it is named.
    """
    rows: dict[int, Row] = {}
    hints = {
        **dict.fromkeys(("number", "wins", "draws", "losses"), int),
        "values": tuple[(float,) * len(space)],  # type: ignore[misc]
        "failures": dict,
    }
    for place, row in enumerate(read_rows(path), start=1):
        source = f"{path}, row {place}"
        for name, hint in hints.items():
            convert({"failures": {}, **row}.get(name), hint, name, source)
        number, counts = row["number"], [row[name] for name in ("wins", "draws", "losses")]
        if number < 0 or number in rows or min(counts) < 0 or sum(counts) != games:
            raise ValueError(f"{source} does not hold another trial of {games} games")
        if not all(map(Parameter.has, space, row["values"])):
            raise ValueError(f"{source}: the values {row['values']} are not in the ranges")
        rows[number] = row
    return rows


def _tally(row: Row) -> Tally:
    return Tally(row["wins"], row["draws"], row["losses"])


def _failures(row: Row) -> dict[str, int]:
    return dict(row.get("failures", {}))  # earlier versions did not count them


def _match(
    request: TuneRequest, player: str, names: tuple[str, str], games: int, seed: int, out: Path
) -> MatchRequest:
    return match_of(
        request,
        player,
        request.against or request.player,
        games=games,
        first_name=names[0],
        second_name=names[1],
        random_plies=request.random_plies or None,
        seed=request.seed + seed,
        out=out,
    )


def _known_players(request: TuneRequest, match: MatchRequest) -> dict[str, dict[str, Any]]:
    """Return the players of the first trial as match.json has them, as those of `match`: runs that
    go on learning play all trials with the checkpoints of the first one."""
    for path in sorted(request.out.glob(f"trial-*/{MATCH}")):
        return dict(zip((match.first, match.second), match_players(path.parent), strict=True))
    return {}


def _conclude(
    request: TuneRequest,
    space: Sequence[Parameter],
    observations: Sequence[Observation],
    failures: dict[str, int],
    save_plot: PlotFn,
    console: Console,
    play: PlayFn,
) -> Tuned:
    """Save the plot, play the confirmation and print what was found."""
    posterior = Posterior(observations)
    values = values_of(space, posterior.best(request.seed))
    winner = point_of(space, values)
    mean, deviation = posterior.estimate(winner)
    save_plot(request.out / PLOT, space, observations, posterior, winner)
    player = with_values(request.player, space, values)
    half = NORMAL_95 * deviation
    for note in failure_notes(failures):
        console.print(f"in the trials, {note}", soft_wrap=True, highlight=False)
    console.print(
        f"best: {player}: {mean:+z.0f} Elo against the opponent by the process (95%: "
        f"{mean - half:+z.0f} to {mean + half:+z.0f}); plot: {request.out / PLOT}",
        soft_wrap=True,
        highlight=False,
    )
    tally = None
    if request.confirm_games:
        match = _match(
            request,
            player,
            ("the winner", _OPPONENT),
            request.confirm_games,
            _CONFIRMATION_SEED,
            request.out / f"confirmation-{request.trials}",
        )
        tally = play(match, console, _known_players(request, match)).result.total
    tuned = Tuned(values, player, mean, deviation, tally, failures)
    _write(request, tuned._asdict() | {"confirmation": None if tally is None else vars(tally)})
    return tuned
