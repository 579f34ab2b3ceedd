"""A match between two of azero's players that play many games at once, in rounds of compiled
games."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import jax
import numpy as np

from azero import mesh as meshes
from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.settings import GameConfig
from azero.match.compiled import MatchGames, make_match, replay
from azero.match.external import Pairing
from azero.match.games import MatchGame
from azero.match.referee import PLAYED_OUT
from azero.players.player import Decision
from azero.players.searches import match_settings
from azero.players.specs import BatchSpec, Loaded, load_player

PAIRS_PER_ROUND = 64
"""Pairs of games played at once; games are saved after each round."""
PAIRS_PER_TESTED_ROUND = 16
"""The same if a sequential test may end the match after a round."""


def play_rounds(
    specs: tuple[BatchSpec, BatchSpec],
    rules: GameConfig,
    pairings: Sequence[Pairing],
    *,
    temperature_moves: int = 0,
    seed: int = 0,
    pairs_per_round: int = PAIRS_PER_ROUND,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[list[MatchGame]]:
    """Yield the games of `pairings`, which are the missing ones, a round at a time, on all devices;
    both games of a pair are played even where only one is missing. The random numbers of a round
    depend on `seed`, its first pair, its size and the number of devices. `is_over` is asked before
    every round."""
    a, b = (load_player(spec, rules) for spec in specs)
    wanted = {pairing.number: pairing for pairing in pairings}
    pairs = sorted({(number - 1) // 2 for number in wanted})
    size = -(-len(pairs) // -(-len(pairs) // pairs_per_round))
    # States that have a komi serve players that see it, and those that do not.
    game = b.game if isinstance(b.game, Go) and b.game.shows_komi else a.game
    match = make_match(
        game,
        a.search,
        b.search,
        2 * size,
        temperature_moves=temperature_moves,
        mesh=meshes.make_mesh(),
        new_trees=(a.new_trees, b.new_trees),
    )
    width = max(len(pairing.opening_moves) for pairing in pairings)
    for begin in range(0, len(pairs), size):
        if is_over():
            return
        chosen = pairs[begin : begin + size]
        padded = chosen + [chosen[-1]] * (size - len(chosen))
        openings = np.full((size, width), -1, np.int32)
        for row, pair in enumerate(padded):
            both = (wanted.get(2 * pair + 1), wanted.get(2 * pair + 2))
            moves = next(pairing.opening_moves for pairing in both if pairing is not None)
            openings[row, : len(moves)] = moves
        key = jax.random.fold_in(jax.random.key(seed), chosen[0])
        games = match(a.params, b.params, key, openings=openings)
        yield list(_collect(games, openings, chosen, wanted, (a, b), specs))


def _collect(
    games: MatchGames,
    openings: np.ndarray,
    pairs: Sequence[int],
    wanted: dict[int, Pairing],
    players: tuple[Loaded, Loaded],
    specs: tuple[BatchSpec, BatchSpec],
) -> Iterator[MatchGame]:
    half = len(openings)
    visits = [
        match_settings(player.config).num_simulations if spec.visits is None else spec.visits
        for player, spec in zip(players, specs, strict=True)
    ]
    both = np.concatenate([openings, openings])
    actions = [
        (*(a for a in both[i].tolist() if a >= 0), *games.actions[i, : games.lengths[i]].tolist())
        for i in range(2 * half)
    ]
    margins = _margins(players[0].game, actions)
    for row, pair in enumerate(pairs):
        for index in (row, half + row):
            first_is_black = bool(games.a_moves_first[index])
            pairing = wanted.get(2 * pair + (1 if first_is_black else 2))
            if pairing is None:
                continue
            start = len(actions[index]) - int(games.lengths[index])
            movers = [(ply % 2 == 0) == first_is_black for ply in range(start, len(actions[index]))]
            decisions = [
                Decision(action, round(float(value), 4), visits[0 if is_first else 1])
                for action, value, is_first in zip(
                    actions[index][start:], games.values[index], movers, strict=False
                )
            ]
            yield MatchGame(
                number=pairing.number,
                opening=pairing.opening,
                first_is_black=first_is_black,
                reward=float(games.rewards[index]),
                actions=actions[index],
                num_opening_moves=start,
                ending=PLAYED_OUT,
                margin=margins[index],
                decisions=tuple(decisions),
            )


def _margins(game: Game, actions: Sequence[tuple[int, ...]]) -> list[float | None]:
    """Return Black's lead at the end of every game of Go; None of other games."""
    if not isinstance(game, Go):
        return [None] * len(actions)
    table = np.full((len(actions), game.max_moves), -1, np.int32)
    for row, moves in zip(table, actions, strict=True):
        row[: len(moves)] = moves
    score = jax.jit(lambda table: jax.vmap(game.score)(replay(cast(Game, game), table)))
    return np.asarray(score(table)).tolist()
