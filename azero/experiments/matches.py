"""Matches between any two players: checkpoints on the devices, many games at once; programs one game at a time."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from azero.config import GameConfig
from azero.engines.external import find_program
from azero.engines.external_match import ExternalGame, external_result, play_external
from azero.evaluate.elo import elo_difference
from azero.evaluate.rows import write_atomically
from azero.evaluate.sgf import format_result, format_sgf
from azero.experiments.players import GtpSpec, NetworkSpec, load_player, parse_player
from azero.play.match import MatchGames, make_match
from azero.play.player import SearchPlayer
from azero.play.score import MatchResult
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
    """Moves at the start of a game drawn in proportion to the search's weights."""
    komi: float | None = None
    """None is the komi of the first checkpoint."""
    seed: int = 0
    out: Path | None = None
    """Directory for the result and the records of the games."""


def play_match(request: MatchRequest, console: Console | None = None) -> MatchResult:
    """Play the match, print its score, and write its games where a directory is named.

    Raises:
      ValueError: a player is not understood, both are programs, the number of games is odd, or the boards differ.
      CheckpointError: a checkpoint cannot be read.
    """
    console = console or Console()
    first, second = parse_player(request.first), parse_player(request.second)
    if request.games < 2 or request.games % 2:
        raise ValueError(f"a match has an even number of games, half with each colour, not {request.games}")
    if isinstance(first, NetworkSpec) and isinstance(second, NetworkSpec):
        result, records = _between_checkpoints(request, first, second, console)
    elif isinstance(first, NetworkSpec) and isinstance(second, GtpSpec):
        result, records = _against_program(request, first, second, console)
    else:
        raise ValueError("the first player has a network of ours; the second one too, or it is a program")
    console.print(f"{first.name} against {second.name}: {result}")
    score = result.total.score
    if 0 < score < 1:
        console.print(f"Elo difference {elo_difference(score):+.0f}")
    if request.out is not None:
        _write(request, first.name, second.name, result, records)
        console.print(f"games and result: {request.out}")
    return result


def _rules(request: MatchRequest, config: GameConfig) -> GameConfig:
    return config if request.komi is None else dataclasses.replace(config, komi=request.komi)


def _between_checkpoints(request: MatchRequest, first: NetworkSpec, second: NetworkSpec, console: Console) -> tuple[MatchResult, list[str]]:
    a = load_player(first)
    rules = _rules(request, a.config.game)
    a, b = load_player(first, rules), load_player(second, rules)
    match = make_match(a.game, a.search, b.search, request.games, temperature_moves=request.temperature_moves)
    with working(f"match of {request.games} games", console):
        games = match(a.params, b.params, jax.random.key(request.seed))
    return games.result, _records(games, a.game.board_shape, rules.komi, first.name, second.name) if rules.name == "go" else []


def _against_program(request: MatchRequest, first: NetworkSpec, second: GtpSpec, console: Console) -> tuple[MatchResult, list[str]]:
    command = [find_program(second.command[0]), *second.command[1:]]
    player = load_player(first)
    rules = _rules(request, player.config.game)
    if rules.name != "go" or len(set(player.game.board_shape)) != 1:
        raise ValueError("a GTP program plays Go on a square board")
    player = load_player(first, rules)
    search = SearchPlayer(player.search, player.params, name=first.name, seed=request.seed, temperature_moves=request.temperature_moves)

    def show(game: ExternalGame) -> None:
        console.print(
            f"game {game.index}: {'Black' if game.we_move_first else 'White'} {game.reward:+.0f}, {len(game.record.final.actions)} moves, {game.record.ending}"
        )

    played = play_external(
        search, command, request.games // 2, player.game, size=player.game.board_shape[0], komi=rules.komi, program_name=second.name, on_game=show
    )
    return external_result(played), [game.sgf(rules.komi) for game in played]


def _records(games: MatchGames, shape: tuple[int, int], komi: float, first: str, second: str) -> list[str]:
    texts = []
    for actions, values, length, reward, a_first in zip(games.actions, games.values, games.lengths, games.rewards, games.a_moves_first, strict=True):
        names = (first, second) if a_first else (second, first)
        black = float(reward if a_first else -reward)
        comments = [f"value {value:+.2f}" for value in np.asarray(values[:length])]
        texts.append(format_sgf([int(action) for action in actions[:length]], shape, komi, names, format_result((black, -black)), comments))
    return texts


def _write(request: MatchRequest, first: str, second: str, result: MatchResult, records: list[str]) -> None:
    assert request.out is not None
    total = result.total
    low, high = total.interval
    facts: dict[str, Any] = {
        "first": request.first,
        "second": request.second,
        "seed": request.seed,
        "temperature_moves": request.temperature_moves,
        "wins": total.wins,
        "draws": total.draws,
        "losses": total.losses,
        "score": total.score,
        "interval": [low, high],
        "as_first_mover": dataclasses.asdict(result.first),
        "as_second_mover": dataclasses.asdict(result.second),
    }
    write_atomically(request.out / "match.json", json.dumps(facts, indent=2) + "\n")
    for index, text in enumerate(records, start=1):
        write_atomically(request.out / f"game{index:04d}.sgf", text)
