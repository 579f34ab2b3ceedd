"""Searches of one tree over real positions, move by move what was recorded: `python
tests/search/single/test_golden_visits.py` records them anew."""

from __future__ import annotations

import functools
import json
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.games.position import Position
from azero.games.table import make
from azero.mesh import make_mesh
from azero.players.play_style import PlayStyle
from azero.players.thinking import Analysis, Limits
from azero.players.tree_player import TreePlayer
from azero.search.leaf import ignore_symmetry
from azero.search.single.leaves import LeafEvaluator
from azero.search.single.mixed import MixedEvaluator, MixSettings
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import AlphaGo2016, Gumbel, Puct, Rule

GOLDEN = Path(__file__).with_name("golden_visits.json")
BOARDS = {"go5": {"size": 5, "komi": 0.5, "max_moves": 40}, "go9": {"size": 9, "komi": 7.5}}
PLAYED = {"go5": (0, 34), "go9": (0, 40)}
"""Random moves before the searched positions; games of go5 are nearly over after 34."""
RULES: dict[str, tuple[Rule, int]] = {
    "engine": (Puct(), 1),
    "alphago_zero": (Puct("alphago_zero", unvisited="draw"), 1),
    "variance": (Puct(variance_scale=0.85), 1),
    "gumbel": (Gumbel(200), 1),
    "alphago2016": (AlphaGo2016(fpu="parent", c_puct=1.0), 1),
    "engine in batches": (Puct(), 8),
    "gumbel in batches": (Gumbel(200), 8),
    "alphago2016 in batches": (AlphaGo2016(fpu="parent", c_puct=1.0), 8),
}
VISITS = 200


def _hashes(words: Any, numpy: Any) -> Any:
    """Return an integer in [0, 4096) for every action and one more for the value."""
    factors = np.random.default_rng(7).integers(1 << 32, size=(83, 4096), dtype=np.uint32)
    mixed = (words ^ (words >> 15)) * numpy.uint32(0x2C1B3C6D)
    total = (factors[:, : words.shape[0]] * mixed).sum(axis=1, dtype=numpy.uint32)
    total = (total ^ (total >> 13)) * numpy.uint32(0x297A2D39)
    return (total ^ (total >> 16)) >> 20


def leaf(params: Any, key: Any, states: Any) -> tuple[jax.Array, jax.Array]:
    """Draw logits in [-2, 2] and values in [-1, 1] by the position."""
    del params, key
    rows = jnp.concatenate(
        [states.frames[:, 0].reshape(states.to_play.shape[0], -1), states.num_moves[:, None] + 1],
        axis=1,
    ).astype(jnp.uint32)
    drawn = jax.vmap(lambda row: _hashes(row, jnp))(rows).astype(jnp.float32)
    num_actions = 26 if rows.shape[1] < 6 else 82
    return drawn[:, :num_actions] / 1024 - 2, drawn[:, 82] / 2048 - 1


def drawn(positions: Any, salt: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw policies over the legal moves and values, for the search of AlphaGo (2016)."""
    policies = np.zeros((len(positions), len(positions[0].legal)), np.float32)
    values = np.zeros(len(positions), np.float32)
    for row, position in enumerate(positions):
        random = np.random.default_rng(zlib.crc32(position.state) + salt)
        legal = np.flatnonzero(position.legal)
        odds = random.integers(1, 1000, len(legal))
        policies[row, legal] = odds / odds.sum()
        values[row] = random.integers(-8, 9) / 8
    return policies, values


def points(value: Any, positions: Any) -> np.ndarray:
    """Draw the outcomes of rollouts for the first mover."""
    signs = np.array([1 if position.to_play == 0 else -1 for position in positions])
    return 7.5 * signs * value(positions)[1]


def begun(ask: Any) -> Any:
    """Return an answering function as one that begins and waits."""
    return lambda positions: lambda: ask(positions)


@functools.cache
def evaluator_of(board: str, name: str) -> LeafEvaluator:
    rule, batch = RULES[name]
    if isinstance(rule, AlphaGo2016):
        policy, value = (functools.partial(drawn, salt=salt) for salt in range(2))
        asks = [
            begun(ask)
            for ask in (policy, value, policy, lambda positions: points(value, positions))
        ]
        return MixedEvaluator(*asks, MixSettings(threshold=3, policy_batch=2), batch)
    settings = TreeSettings(batch=batch, rule=Puct(), symmetry="none")
    game, one_device = make("go", **BOARDS[board]), make_mesh(jax.local_devices()[:1])
    return settings.make_evaluator(game, ignore_symmetry(leaf), {}, mesh=one_device)


def position_of(board: str, played: int) -> Position:
    random, position = np.random.default_rng(1), Position.start(make("go", **BOARDS[board]))
    for _ in range(played):
        points = np.flatnonzero(position.legal[:-1])
        pass_move = position.game.num_actions - 1
        position = position.play(int(random.choice(points)) if len(points) else pass_move)
    return position


def search(board: str, name: str) -> list[list[Any]]:
    """Return, for each position, the analysed moves in their order: the move, its visits, its value
    in thousandths, the length of its line; and a search more after the best move and a reply."""
    rule, batch = RULES[name]
    keeps = not isinstance(rule, Gumbel)
    loss = 3 if isinstance(rule, AlphaGo2016) else 1
    settings = TreeSettings(
        batch=batch, rule=rule, symmetry="none", keeps_tree=keeps, virtual_loss=loss
    )
    found = []
    for played in PLAYED[board]:
        position = position_of(board, played)
        thinker = TreePlayer(
            position.game, evaluator_of(board, name), settings=settings, style=PlayStyle()
        )
        first = thinker.think(position, Limits(visits=VISITS))
        found.append(shown(first))
        line = max((move.line for move in first.moves), key=len)[:2]
        for action in line:
            position = position.play(action)
        if not position.is_over:
            found.append(shown(thinker.think(position, Limits(playouts=VISITS))))
    return found


def shown(analysis: Analysis) -> list[Any]:
    moves = [
        [move.action, move.visits, round(1000 * move.value), len(move.line)]
        for move in analysis.moves
    ]
    return [round(1000 * analysis.value), analysis.visits, analysis.deepest, *moves]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("board", BOARDS)
def test_searches_are_those_recorded(board: str, name: str) -> None:
    expected = json.loads(GOLDEN.read_text())[board][name]
    assert search(board, name) == expected


if __name__ == "__main__":
    recorded = {board: {name: search(board, name) for name in RULES} for board in BOARDS}
    GOLDEN.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")
