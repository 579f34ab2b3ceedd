"""Matches in which programs take part: several games at once, each refereed by our own rules."""

import functools
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax

from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.scoring.status import judge
from azero.games.position import Position, position_of
from azero.match.games import MatchGame
from azero.match.referee import PLAYED_OUT, PlayedGame, play_game
from azero.players.clock import Clock
from azero.players.gtp_player import GtpPlayer
from azero.players.player import MakePlayer, Player
from azero.players.program import ProgramPlayer
from azero.types import Array, PyTree

GNU_GO = "gnugo --mode gtp --level {level} --seed {seed}"
"""GNU Go with its default settings: under Japanese rules it passes while dead stones are on the
board."""
OUR_RULES = "--chinese-rules --positional-superko --capture-all-dead"
"""GNU Go options closest to our rules: area scoring, positional superko, dead stones captured
before it passes."""


def gnu_go_command(level: int = 10, our_rules: bool = True) -> list[str]:
    """Return the words that start GNU Go, with its own rules or ours; `{seed}` stays open for the
    number of each game."""
    return GNU_GO.replace("{level}", str(level)).split() + (OUR_RULES.split() if our_rules else [])


@dataclass(frozen=True)
class Pairing:
    """A game to be played."""

    number: int
    """From 1."""
    opening: int | None = None
    """Number of the opening or position, from 1; None is the empty board."""
    opening_moves: tuple[int, ...] = ()
    start: str = ""
    """Start position as text (FEN, SFEN); empty is the game's own."""
    first_colour: int | None = None
    """0 if the match's first player has the side that begins a whole game (Black in Go, White in
    chess), 1 if the other; None is 0 in odd games, 1 in even ones."""

    @property
    def first_is_black(self) -> bool:
        """Whether the match's first player has the side that begins a whole game."""
        return self.number % 2 == 1 if self.first_colour is None else self.first_colour == 0

    def first_position(self, game: Game) -> Position:
        """Return the position before the first move of the opening.

        Raises:
          ValueError: `start` is not a position of the game; what is wrong is named.
        """
        return position_of(self.start, game) if self.start else Position.start(game)


def play_games(
    game: Game,
    makers: Sequence[tuple[MakePlayer, MakePlayer]],
    pairings: Iterable[Pairing],
    *,
    timeout: float = 60.0,
    clock: Clock | None = None,
    free_moves: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[MatchGame]:
    """Play games in one thread for each of `makers` of the first and the second player, and yield
    them as they end. A move that our rules forbid, a crash or a timeout (seconds for a move) loses
    the game, and the record says so; so does exceeding the clock, if there is one. `stop` is asked
    before each new game.

    Raises:
      ValueError: a program cannot be started, or an opening is not legal.
    """
    todo: queue.SimpleQueue[Pairing] = queue.SimpleQueue()
    for pairing in pairings:
        todo.put(pairing)
    finished: queue.SimpleQueue[MatchGame | BaseException | None] = queue.SimpleQueue()
    active: set[ProgramPlayer[Any]] = set()
    ended = threading.Event()

    def work(make_first: MakePlayer, make_second: MakePlayer) -> None:
        try:
            while not ended.is_set() and not stop():
                pairing = todo.get_nowait()
                players = make_first(pairing.number), make_second(pairing.number)
                finished.put(
                    _play(game, *players, pairing, clock, timeout, free_moves, active, ended.is_set)
                )
        except queue.Empty:
            pass
        except BaseException as error:  # raised where the games are awaited
            finished.put(error)
        finally:
            finished.put(None)

    with ThreadPoolExecutor(len(makers), thread_name_prefix="match") as threads:
        for pair in makers:
            threads.submit(work, *pair)
        try:
            working = len(makers)
            while working:
                outcome = finished.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                if outcome is None:
                    working -= 1
                else:
                    yield outcome
        finally:
            # Games that are still going on end with their next move, or without their programs.
            ended.set()
            for program in list(active):
                program.close()


def _play(
    game: Game,
    first: Player,
    second: Player,
    pairing: Pairing,
    clock: Clock | None,
    timeout: float,
    free_moves: int,
    active: set[ProgramPlayer[Any]],
    stop: Callable[[], bool],
) -> MatchGame:
    first_is_black = pairing.first_is_black
    black, white = (first, second) if first_is_black else (second, first)
    programs = [player for player in (first, second) if isinstance(player, ProgramPlayer)]
    active.update(programs)
    try:
        record = play_game(
            game,
            black,
            white,
            Clock(timeout) if clock is None else clock,
            pairing.opening_moves,
            pairing.first_position(game),
            is_timed=clock is not None,
            free_moves=free_moves,
            stop=stop,
        )
        margin, cleared, disagreement = _compare_scores(record, programs)
    finally:
        for program in programs:
            program.close()
            active.discard(program)
    seconds = record.seconds if first_is_black else record.seconds[::-1]
    return MatchGame(
        number=pairing.number,
        opening=pairing.opening,
        start=pairing.start,
        first_is_black=first_is_black,
        reward=record.rewards[0 if first_is_black else 1],
        actions=record.final.actions,
        num_opening_moves=record.num_opening_moves,
        ending=record.ending,
        failed="" if record.failed is None else record.names[record.failed],
        margin=margin,
        cleared_margin=cleared,
        disagreement=disagreement,
        seconds=(round(seconds[0], 2), round(seconds[1], 2)),
        decisions=record.decisions,
    )


def _compare_scores(
    record: PlayedGame, programs: Sequence[ProgramPlayer[Any]]
) -> tuple[float | None, float | None, str]:
    """Compare our score of a finished game of Go with what GTP programs claim.

    Returns:
      `margin`, `cleared_margin` and `disagreement` of a `MatchGame`.
    """
    margin = _margin(record)
    if margin is None or not _passed_twice(record):
        return margin, None, ""
    claims = {
        program.name: (claim, score)
        for program in programs
        if isinstance(program, GtpPlayer)
        and (claim := program.final_score())
        and (score := parse_score(claim)) not in (None, margin)
    }
    cleared = _cleared_margin(record) if claims else None
    # Who wins is what counts: stones that both sides leave on the board as dead change the margin
    # alone.
    agreed = {score for _, score in claims.values() if score == cleared and score * margin > 0}
    differing = [
        f"{name} says {claim}" for name, (claim, score) in claims.items() if score not in agreed
    ]
    return margin, cleared if agreed else None, "; ".join(differing)


def _margin(record: PlayedGame) -> float | None:
    game = record.final.game
    if not isinstance(game, Go) or record.ending != PLAYED_OUT:
        return None
    return float(_score_fn(game)(record.final.state))


@functools.lru_cache(maxsize=8)
def _score_fn(game: Go) -> Callable[[PyTree], Array]:
    """Return `game.score`, compiled once; outside jit its choices by platform compile at each call,
    and a process that plays hundreds of games runs out of memory maps."""
    return jax.jit(game.score)


def _cleared_margin(record: PlayedGame) -> float:
    """Return Black's lead at the end of a game of Go once the dead stones are taken off."""
    game, final = record.final.game, record.final.state
    assert isinstance(game, Go)
    return judge(game.board(final)).margin - game.komi


def _passed_twice(record: PlayedGame) -> bool:
    """Whether the game ended by two passes, not by our limit of moves."""
    passing = record.final.game.num_actions - 1
    return record.final.actions[-2:] == (passing, passing)


def parse_score(text: str) -> float | None:
    """Return Black's lead from an answer to final_score (B+3.5, W+12, 0); None if it is something
    else."""
    found = re.match(r"\s*([BW])\+(\d+(?:\.\d+)?)", text, re.IGNORECASE)
    if found is None:
        return 0.0 if text.strip().lower() in ("0", "draw") else None
    return float(found.group(2)) * (1 if found.group(1) in "Bb" else -1)
