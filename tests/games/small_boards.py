"""What the tests of minichess and of animal shogi share: games played by the names of moves,
against plain referees, and beside Pgx."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import numpy as np
from needs import require_module


@functools.cache
def verbs(game):
    """The compiled verbs of a batch: step, and (mask, ending, rewards) of states."""
    look = jax.vmap(
        lambda state: (game.legal_action_mask(state), state.ending, game.rewards(state))
    )
    return jax.jit(jax.vmap(game.step)), jax.jit(look)


def copies(state, count: int):
    return jax.tree.map(lambda leaf: np.stack([leaf] * count), state)


def one_of(states, number: int):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[number], states)


def play_names(game, state, names: Sequence[str], parse: Callable[[Any, str], int], batch: int):
    """The state after moves; `parse` gives the action of a name in a state. The verbs are those of
    a batch, which are compiled anyway."""
    step, _ = verbs(game)
    states = copies(state, batch)
    for name in names:
        states = step(states, np.full(batch, parse(one_of(states, 0), name), np.int32))
    return one_of(states, 0)


def play_beside_referees(
    game,
    referees: list,
    endings: Sequence[str],
    lost: Collection[str],
    is_first: Callable[[Any], bool],
    pick: Callable[..., int],
):
    """Play one game for each referee to its end; legal moves, endings and rewards must agree at
    every move.

    `lost` are the endings that the side to move has lost by, the others are draws; `pick(number,
    referee, moves)` chooses one of the actions that are the keys of `moves`. Returns the last
    states and how often each ending came up.
    """
    step, look = verbs(game)
    states = copies(game.init(), len(referees))
    over, reasons = [""] * len(referees), collections.Counter()
    while not all(over):
        masks, ended, rewards = map(np.asarray, look(states))
        actions = np.zeros(len(referees), np.int32)
        for number, referee in enumerate(referees):
            if over[number]:
                continue
            over[number] = referee.ending()
            assert endings[ended[number]] == over[number], referee.pieces
            if over[number]:
                reasons[over[number]] += 1
                loser = -1 if is_first(referee) else 1
                assert rewards[number].tolist() == (
                    [loser, -loser] if over[number] in lost else [0, 0]
                )
                continue
            moves = {referee.action(move): move for move in referee.moves()}
            assert np.flatnonzero(masks[number]).tolist() == sorted(moves), referee.pieces
            actions[number] = pick(number, referee, moves)
            referee.push(moves[int(actions[number])])
        states = step(states, actions)
    return states, reasons


def compare_with_pgx(
    game,
    name: str,
    labels: np.ndarray,
    batch: int,
    seed: int,
    is_unlike: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> None:
    """Play random games beside Pgx: the same legal moves, the same end.

    `labels` is for each action of Pgx ours; `is_unlike(endings, terminated)` says which games are
    not followed from here on; None is none of them.
    """
    env = require_module("pgx").make(name)
    theirs, step_theirs = (
        jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), batch)),
        jax.jit(jax.vmap(env.step)),
    )
    step, look = verbs(game)
    states, rng = copies(game.init(), batch), np.random.default_rng(5 + seed)
    followed, compared = np.ones(batch, bool), 0
    for _ in range(60):
        masks, endings, _ = map(np.asarray, look(states))
        legal, terminated = np.asarray(theirs.legal_action_mask), np.asarray(theirs.terminated)
        if is_unlike is not None:
            followed &= ~is_unlike(endings, terminated)
        np.testing.assert_array_equal(terminated[followed], (endings != 0)[followed])
        actions, their_actions = np.zeros(batch, np.int32), np.zeros(batch, np.int32)
        for number in np.flatnonzero(followed & (endings == 0)):
            allowed = np.flatnonzero(legal[number])
            assert sorted(labels[allowed]) == np.flatnonzero(masks[number]).tolist()
            their_actions[number] = rng.choice(allowed)
            actions[number] = labels[their_actions[number]]
            compared += 1
        states, theirs = step(states, actions), step_theirs(theirs, their_actions)
    assert compared > 500
