"""Matches between any two players: networks on the devices, many games at once; programs with one
process per game, several games at once."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console

from azero.console.progress import Progress
from azero.console.tables import count_of
from azero.console.terminal import make_console
from azero.games.settings import GameConfig
from azero.games.table import side_names
from azero.match.batched import PAIRS_PER_ROUND, PAIRS_PER_TESTED_ROUND, play_rounds
from azero.match.directory import COPIES, MatchDirectory, read_match_games, read_players
from azero.match.elo import format_elo_difference
from azero.match.external import Pairing, play_games
from azero.match.games import (
    MatchGame,
    MatchSummary,
    absent_player,
    complete_pairs,
    failure_notes,
    summarise,
)
from azero.match.openings import draw_pairings
from azero.match.records import RECORDS, Occasion
from azero.match.request import MatchRequest
from azero.match.sides import (
    Side,
    check_start_positions,
    describe_rules,
    keep_network,
    match_rules,
    player_maker,
    plays_at_once,
    read_sides,
    restore_side,
    with_checkpoint,
)
from azero.match.sprt import Sprt
from azero.players.specs import BatchSpec


class AbsentPlayerError(ValueError):
    """A player never made a move, so that its games say nothing about anybody's strength."""

    def __init__(self, side: Side, ending: str) -> None:
        super().__init__(f"no match: {side.name} ({side.text}) never played a move: {ending}")
        self.side, self.ending = side, ending


def play_match(
    request: MatchRequest,
    console: Console | None = None,
    known: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    rules: GameConfig | None = None,
) -> MatchSummary:
    """Play the match, print its score, and write its games where a directory is named. The players
    `known` of other matches (`read_players`) play with the checkpoints that they had there, and
    `rules` are by default those of the two players (`match_rules`).

    Raises:
      AbsentPlayerError: a player never made a move.
      ValueError: a player or an opening is not understood, the boards differ, or the directory
        holds another match.
      CheckpointError: a checkpoint cannot be read.
      KeyboardInterrupt: it was stopped; the message says what is kept.
    """
    console = console or make_console()
    here = read_players([] if request.out is None else [request.out])
    sides = tuple(
        with_checkpoint(side, known.get(side.text))
        for side in read_sides(request, {**here, **known})
    )
    rules = rules or match_rules(request, sides)
    pairings = draw_pairings(request, rules.build())
    if request.start_positions is not None:
        check_start_positions(sides)
    with contextlib.ExitStack() as stack:
        directory = None
        if request.out is not None:
            directory = _open_directory(request.out, request, sides, rules)
            stack.callback(directory.close)
            at_once = plays_at_once(sides, request.plays_singly)
            sides = tuple(
                restore_side(side, facts, at_once)
                for side, facts in zip(sides, directory.players, strict=True)
            )
        match = _RunningMatch(request, sides, rules, pairings, directory, console)
        try:
            match.run()
        except KeyboardInterrupt:
            kept = "without --out nothing is kept"
            if directory is not None:
                there = count_of(len(directory.games), "finished game")
                kept = f"{request.out} has {there}, and the same command continues"
            raise KeyboardInterrupt(f"stopped; {kept}") from None
        return match.report()


def check_match_directory(request: MatchRequest, sides: Sequence[Side], rules: GameConfig) -> None:
    """Check that the directory of a match can be continued, before other matches are played.

    Raises:
      ValueError: it holds games of another match, or is in use.
    """
    if request.out is not None and read_match_games(request.out):
        _open_directory(request.out, request, sides, rules).close()


def _open_directory(
    path: Path, request: MatchRequest, sides: Sequence[Side], rules: GameConfig
) -> MatchDirectory:
    command = request.command | {"rules": describe_rules(rules)}
    return MatchDirectory(path, command, [side.facts for side in sides])


class _RunningMatch:
    """The games of a match, the test that may end it, and its output."""

    def __init__(
        self,
        request: MatchRequest,
        sides: Sequence[Side],
        rules: GameConfig,
        pairings: Sequence[Pairing],
        directory: MatchDirectory | None,
        console: Console,
    ) -> None:
        self.request = request
        self.sides = sides
        self.directory = directory
        self.console = console
        self.rules = rules
        self.pairings = pairings
        self.game = rules.build()
        self.games: list[MatchGame] = [] if directory is None else list(directory.games)
        self._test = None if request.sprt is None else Sprt(*request.sprt)
        self._tested = 0
        self.decision: tuple[int, str] | None = None
        self._check_test()

    def _say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, highlight=False)

    def run(self) -> None:
        """Play the missing games."""
        if self.games:
            self._say(f"{len(self.games)} of {self.request.games} games are in {self.request.out}")
        if not self._is_over():
            self._play_missing()
        self._refuse_absent(self.games)

    def _play_missing(self) -> None:
        first, second = (side.name for side in self.sides)
        self._say(f"{first} against {second}: {describe_rules(self.rules)}")
        if self.directory is not None:
            places = [self.directory.path / name for name in COPIES]
            self.sides = list(map(keep_network, self.sides, places))
        done = {game.number for game in self.games}
        missing = [pairing for pairing in self.pairings if pairing.number not in done]
        for game in self._play(missing):
            if game.failed and len(game.actions) == game.num_opening_moves:
                self._refuse_absent([*self.games, game])
            self.games.append(game)
            if self.directory is not None:
                self.directory.add(game, self._record(game))
            self._check_test()

    def _refuse_absent(self, games: Sequence[MatchGame]) -> None:
        """Check that no side has failed in all of `games` before its first move.

        Raises:
          AbsentPlayerError: one has.
        """
        absent = absent_player(games)
        for side in self.sides:
            if side.name == absent:
                raise AbsentPlayerError(side, games[-1].ending)

    def _record(self, game: MatchGame) -> tuple[str, str] | None:
        """Return suffix and text of a finished game; None for a game without a common format."""
        if self.rules.name not in RECORDS:
            return None
        suffix, write = RECORDS[self.rules.name]
        first, second = (side.name for side in self.sides)
        occasion = Occasion(self.request.clock, date=time.strftime("%Y-%m-%d"))
        return suffix, write(game, self.game, (first, second), occasion)

    def report(self) -> MatchSummary:
        """Print, write and return the result."""
        summary = summarise(self.games)
        first, second = (side.name for side in self.sides)
        movers = ("moving first", "second")
        if (self.request.start_positions, self.request.handicap) != (None, None):
            black, white = side_names(self.game.name)
            movers = (f"as {black}", f"as {white}")
        for line in report_lines(first, second, summary, movers):
            self._say(line)
        verdict = None
        if self.decision is not None:
            verdict = self.decision[1]
            self._say(f"the test is decided: {first} is {verdict}")
        elif self._test is not None:
            verdict = self._test.undecided(complete_pairs(self.games))
            self._say(f"the test is {verdict}")
        if self.directory is not None:
            self.directory.finish(summary, verdict)
            self._say(f"games and result: {self.request.out}")
        return summary

    def _check_test(self) -> None:
        """Check whether the test is decided: by complete pairs in their order, so that fast games
        do not count before slow ones."""
        if self._test is not None and self.decision is None:
            pairs = complete_pairs(self.games)
            self.decision = self._test.decide(pairs, self._tested)
            self._tested = len(pairs)

    def _is_over(self) -> bool:
        return self.decision is not None or len(self.games) >= self.request.games

    def _play(self, pairings: Sequence[Pairing]) -> Iterator[MatchGame]:
        first, second = self.sides
        if plays_at_once(self.sides, self.request.plays_singly):
            assert isinstance(first.spec, BatchSpec) and isinstance(second.spec, BatchSpec)
            is_tested = self.request.sprt is not None
            rounds = play_rounds(
                (first.spec, second.spec),
                self.rules,
                pairings,
                temperature_moves=self.request.temperature_moves,
                seed=self.request.seed,
                pairs_per_round=PAIRS_PER_TESTED_ROUND if is_tested else PAIRS_PER_ROUND,
                is_over=self._is_over,
            )
            with (
                Progress(
                    self.request.games, len(self.games), self.console, unit="game"
                ) as progress,
                progress.working("playing (compiling at first)"),
            ):
                for games in rounds:
                    yield from games
                    progress.update({"iteration": len(self.games)})
            return
        known = len(self.games)
        makers = [
            (
                player_maker(first, self.request, self.rules, worker, known),
                player_maker(second, self.request, self.rules, worker, known),
            )
            for worker in range(self.request.workers)
        ]
        clock = self.request.clock
        for game in play_games(
            self.game,
            makers,
            pairings,
            timeout=self.request.timeout,
            clock=clock.clock() if clock.is_set else None,
            free_moves=self.request.handicap or 0,
            stop=self._is_over,
        ):
            colour = side_names(self.game.name)[0 if game.first_is_black else 1]
            outcome = {1: "won", 0: "drew", -1: "lost"}[round(game.reward)]
            moves = count_of(len(game.actions), "move")
            result = f"{first.name} {outcome} as {colour}, {moves}, {game.ending}"
            yield game  # and only when it is written
            self._say("; ".join([f"game {game.number}: {result}", *game.score_notes]))


def report_lines(
    first: str, second: str, summary: MatchSummary, movers: tuple[str, str]
) -> list[str]:
    """Return the report of a match in lines; `movers` are the names of the first player's sides."""
    total, score = summary.result.total, summary.score
    black, white = summary.result.first, summary.result.second
    certainty = (
        f"95%: {100 * score.low:.1f} to {100 * score.high:.1f}, from {score.groups} independent "
        f"groups of games"
    )
    lines = [
        f"{first} against {second}: {total}: {100 * score.score:.1f}% "
        f"({certainty if score.groups > 1 else 'no interval: all games are of one group'}); "
        f"{movers[0]} {black.wins}-{black.draws}-{black.losses}, {movers[1]} "
        f"{white.wins}-{white.draws}-{white.losses}"
    ]
    if 0 < score.score < 1 and score.groups > 1:
        lines.append(f"Elo difference {format_elo_difference(score.score, score.low, score.high)}")
    lines += failure_notes(summary.failures)
    if summary.disagreements:
        games = count_of(summary.disagreements, "game")
        lines.append(f"{games} whose score a program counts differently")
    if summary.repeats:
        alone = summary.different.total
        lines += [
            f"{count_of(summary.repeats, 'repeated game')}, move by move: openings or temperature "
            f"moves make games differ. Without repeats, {count_of(alone.games, 'game')}: "
            f"{alone}: {100 * alone.score:.1f}%"
        ]
    return lines
