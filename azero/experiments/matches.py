"""Matches between any two players: networks on the devices, many games at once; programs one process a game, several games at once."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from azero.config import Config, GameConfig
from azero.engines.external_match import MakePlayer, Pairing, play_games
from azero.engines.program import find_program
from azero.evaluate.elo import elo_difference
from azero.evaluate.match_games import MatchGame, MatchSummary, complete_pairs, summarise
from azero.evaluate.sprt import Sprt
from azero.experiments.batched_match import PAIRS_PER_ROUND, PAIRS_PER_TESTED_ROUND, play_rounds
from azero.experiments.match_directory import MatchDirectory
from azero.experiments.match_records import RECORDS, colours
from azero.experiments.openings import draw_openings, read_openings
from azero.experiments.players import CheckpointSpec, NetworkSpec, ThinkerSettings, ThinkerSpec, load_any_thinker, parse_player, resolve
from azero.experiments.programs import ProgramSpec, program_maker
from azero.games import Game, make
from azero.pipelines.loop import match_settings
from azero.play.player import Player, Position
from azero.play.score import MatchResult
from azero.play.thinking import Limits
from azero.play.tree_player import PlayStyle
from azero.report.progress import working


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

    @property
    def command(self) -> dict[str, Any]:
        """What decides the games: all but where they are written and how many are played at once."""
        facts = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in ("out", "workers")}
        if self.openings is not None:
            content = self.openings.read_bytes() if self.openings.is_file() else b""
            facts["openings"] = f"{self.openings.name} (sha256 {hashlib.sha256(content).hexdigest()[:12]})"
        return facts


@dataclass(frozen=True)
class _Side:
    """A player of the match."""

    text: str
    spec: ThinkerSpec | ProgramSpec
    config: Config | None
    """Of a player of ours."""
    name: str

    @property
    def facts(self) -> dict[str, Any]:
        """What match.json says of it."""
        return {"name": self.name, "player": self.text, "iteration": self.spec.iteration if isinstance(self.spec, CheckpointSpec) else None}


def play_match(request: MatchRequest, console: Console | None = None) -> MatchResult:
    """Play the match, print its score, and write its games where a directory is named.

    Raises:
      ValueError: a player or an opening is not understood, the boards differ, or the directory holds another match.
      CheckpointError: a checkpoint cannot be read.
    """
    console = console or Console()
    sides = _sides(request)
    rules = _rules(request, sides)
    game = make(rules.name, **rules.options())
    openings = _openings(request, game)
    with contextlib.ExitStack() as stack:
        directory = None
        if request.out is not None:
            directory = MatchDirectory(request.out, request.command, [side.facts for side in sides])
            stack.callback(directory.close)
            sides = tuple(_as_before(side, facts) for side, facts in zip(sides, directory.players, strict=True))
        match = _RunningMatch(request, sides, rules, openings, directory, console)
        match.run()
        return match.report()


class _RunningMatch:
    """The games of a match as they come, the test that may end it, and what is printed."""

    def __init__(
        self,
        request: MatchRequest,
        sides: Sequence[_Side],
        rules: GameConfig,
        openings: Sequence[tuple[int, ...]] | None,
        directory: MatchDirectory | None,
        console: Console,
    ) -> None:
        self.request = request
        self.sides = sides
        self.directory = directory
        self.console = console
        self.rules = rules
        self.openings = openings
        self.game = make(rules.name, **rules.options())
        self.games: list[MatchGame] = [] if directory is None else list(directory.games)
        self._test = None if request.sprt is None else Sprt(*request.sprt)
        self._tested = 0
        self.decision: tuple[int, str] | None = None
        self._look()

    def run(self) -> None:
        """Play what is missing."""
        if self.games:
            self.console.print(f"{len(self.games)} of {self.request.games} games are in {self.request.out}", soft_wrap=True)
        if self._is_over():
            return
        done = {game.number for game in self.games}
        pairings = [pairing for pairing in _pairings(self.request.games, self.openings) if pairing.number not in done]
        for game in self._play(pairings):
            self.games.append(game)
            if self.directory is not None:
                self.directory.add(game, self._record(game))
            self._look()

    def _record(self, game: MatchGame) -> tuple[str, str] | None:
        """Return suffix and text of a finished game; None for a game that nobody else has a format for."""
        if self.rules.name not in RECORDS:
            return None
        suffix, write = RECORDS[self.rules.name]
        return suffix, write(game, self.rules, self.game, (self.sides[0].name, self.sides[1].name))

    def report(self) -> MatchResult:
        """Print what came of it, write it down and return it."""
        summary = summarise(self.games)
        for line in _report_lines(self.sides[0].name, self.sides[1].name, summary):
            self.console.print(line, soft_wrap=True, markup=False, highlight=False)
        if self.decision is not None:
            self.console.print(f"the test is decided: {self.sides[0].name} is {self.decision[1]}", soft_wrap=True, markup=False)
        if self.directory is not None:
            self.directory.finish(summary, None if self.decision is None else self.decision[1])
            self.console.print(f"games and result: {self.request.out}", soft_wrap=True, markup=False)
        return summary.result

    def _look(self) -> None:
        """See whether the test is decided: by complete pairs in their order, so that quick games do not count before slow ones."""
        if self._test is not None and self.decision is None:
            pairs = complete_pairs(self.games)
            self.decision = self._test.decide(pairs, self._tested)
            self._tested = len(pairs)

    def _is_over(self) -> bool:
        return self.decision is not None or len(self.games) >= self.request.games

    def _play(self, pairings: Sequence[Pairing]) -> Iterator[MatchGame]:
        first, second = self.sides
        if isinstance(first.spec, NetworkSpec) and isinstance(second.spec, NetworkSpec):
            per_round = PAIRS_PER_ROUND if self.request.sprt is None else PAIRS_PER_TESTED_ROUND
            draws, seed = self.request.temperature_moves, self.request.seed
            rounds = play_rounds(
                (first.spec, second.spec), self.rules, pairings, temperature_moves=draws, seed=seed, pairs_per_round=per_round, is_over=self._is_over
            )
            with working(f"match of {len(pairings)} games", self.console):
                yield from rounds
            return
        makers = [tuple(_maker(side, self.request, self.rules, worker) for side in self.sides) for worker in range(self.request.workers)]
        for game in play_games(self.game, [(a, b) for a, b in makers], pairings, timeout=self.request.timeout, stop=self._is_over):
            colour = colours(self.game)[0 if game.first_is_black else 1]
            note = f"; {game.disagreement}" if game.disagreement else ""
            self.console.print(
                f"game {game.number}: {first.name} as {colour} {game.reward:+.0f}, {len(game.actions)} moves, {game.ending}{note}", soft_wrap=True, markup=False
            )
            yield game


def _sides(request: MatchRequest) -> tuple[_Side, ...]:
    """Return both players with names that tell them apart."""
    texts, wanted = (request.first, request.second), (request.first_name, request.second_name)
    specs: list[ThinkerSpec | ProgramSpec] = []
    configs: list[Config | None] = []
    for text in texts:
        spec = parse_player(text)
        if isinstance(spec, ThinkerSpec):
            resolved, config = resolve(spec)
            specs, configs = [*specs, resolved], [*configs, config]
        else:
            find_program(spec.command[0])
            specs, configs = [*specs, spec], [*configs, None]
    names = [name or spec.name for name, spec in zip(wanted, specs, strict=True)]
    if names[0] == names[1]:
        names = [name or (spec.name if isinstance(spec, ThinkerSpec) else spec.long_name) for name, spec in zip(wanted, specs, strict=True)]
    if names[0] == names[1]:
        names[1] += " (2)"
    return tuple(_Side(*side) for side in zip(texts, specs, configs, names, strict=True))


def _as_before(side: _Side, facts: dict[str, Any]) -> _Side:
    """Return the player as it was when the match began: the newest checkpoint of that day."""
    if not isinstance(side.spec, CheckpointSpec):
        return side
    return dataclasses.replace(side, spec=dataclasses.replace(side.spec, iteration=facts["iteration"]), name=facts["name"])


def _rules(request: MatchRequest, sides: Sequence[_Side]) -> GameConfig:
    """Return the rules of the match.

    Raises:
      ValueError: a player plays something else.
    """
    trained = next((side.config.game for side in sides if side.config is not None), None)
    programs = [side.spec.game for side in sides if not isinstance(side.spec, ThinkerSpec)]
    name = request.game or (programs[0] if trained is None else trained.name)
    rules = trained if trained is not None and trained.name == name else GameConfig(name=name)
    if name == "go":
        rules = _go_rules(request, rules)
    elif request.komi is not None or request.size is not None:
        raise ValueError(f"size and komi are settings of Go, not of {name}")
    board = make(rules.name, **rules.options())
    for side in sides:
        if isinstance(side.spec, ThinkerSpec):
            assert side.config is not None
            known = make(side.config.game.name, **side.config.game.options())
            if (known.name, known.board_shape) != (board.name, board.board_shape):
                raise ValueError(f"{side.name} plays {known.name} on {_by(known)}, not {board.name} on {_by(board)}")
        elif side.spec.game != board.name or (board.name == "go" and len(set(board.board_shape)) != 1):
            raise ValueError(f"{side.name} plays {'Go on a square board' if side.spec.game == 'go' else side.spec.game}, not {board.name} on {_by(board)}")
    return rules


def _go_rules(request: MatchRequest, trained: GameConfig) -> GameConfig:
    rules = trained if request.komi is None else dataclasses.replace(trained, komi=request.komi)
    if request.size is None:
        return rules
    return dataclasses.replace(rules, size=(request.size,), max_moves=None if (request.size,) != trained.size else rules.max_moves)


def _openings(request: MatchRequest, game: Game) -> list[tuple[int, ...]] | None:
    """Return the openings of the match; None is the empty board."""
    if request.random_plies is not None:
        return draw_openings(game, request.games // 2, request.random_plies, request.seed)
    return None if request.openings is None else read_openings(request.openings, game, request.opening_moves)


def _by(game: Game) -> str:
    return "x".join(map(str, game.board_shape))


def _pairings(games: int, openings: Sequence[tuple[int, ...]] | None) -> list[Pairing]:
    """Return the games: the openings in turn, each one with both colours before the next."""
    if openings is None:
        return [Pairing(number) for number in range(1, games + 1)]
    chosen = [(number, (number - 1) // 2 % len(openings)) for number in range(1, games + 1)]
    return [Pairing(number, index + 1, openings[index]) for number, index in chosen]


def _maker(side: _Side, request: MatchRequest, rules: GameConfig, worker: int) -> MakePlayer:
    """Return what makes the side's player of a game for one thread; a network's is loaded once and keeps its tree to itself."""
    if not isinstance(side.spec, ThinkerSpec):
        return program_maker(side.spec, side.name, rules, request.timeout, request.seed)
    assert side.config is not None
    style = PlayStyle(limits=Limits(visits=match_settings(side.config).num_simulations), temperature_moves=request.temperature_moves)
    player = load_any_thinker(side.spec, rules, ThinkerSettings(style=style, seed=request.seed + worker))
    player.name = side.name
    player.warm_up(Position.start(make(rules.name, **rules.options())))

    def same(number: int) -> Player:
        return player

    return same


def _report_lines(first: str, second: str, summary: MatchSummary) -> list[str]:
    total, score = summary.result.total, summary.score
    black, white = summary.result.first, summary.result.second
    lines = [
        f"{first} against {second}: {total.wins} wins, {total.draws} draws, {total.losses} losses: {100 * score.score:.1f}% "
        f"(95%: {100 * score.low:.1f} to {100 * score.high:.1f}, from {score.groups} independent groups of games); "
        f"moving first {black.wins}-{black.draws}-{black.losses}, second {white.wins}-{white.draws}-{white.losses}"
    ]
    if 0 < score.score < 1:
        low, high = (f"{elo_difference(end):+.0f}" if 0 < end < 1 else "open" for end in (score.low, score.high))
        lines.append(f"Elo difference {elo_difference(score.score):+.0f} ({low} to {high})")
    lines += [f"{count} games lost by a failure of {name}" for name, count in summary.failures.items()]
    lines += [f"{summary.disagreements} games whose score a program counts differently"] if summary.disagreements else []
    lines += [f"{summary.repeats} games repeat an earlier one move by move: openings or temperature moves make them differ"] if summary.repeats else []
    return lines
