"""What the tests of chess, shogi and their small relatives share: games played by the names of
moves, against referees, and beside Pgx."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from needs import require_module
from perft import padded, part, programs, stack


def play_names(compiled, state, names: Sequence[str], parse: Callable[[Any, str], int], batch: int):
    """The state after moves; `parse` gives the action of a name in a state. The programs are those
    of a batch, which are compiled anyway."""
    step, _ = compiled
    for name in names:
        assert not int(state.ending), f"over before {name}"
        actions = np.full(batch, parse(state, name), np.int32)
        state = part(step(padded(stack([state]), batch), actions), 0)
    return state


def play_beside_referees(
    compiled, state, referees: list, endings: Sequence[str], pick: Callable[..., int], batch: int
):
    """Play one game for each referee from `state` to its end; legal moves, endings and rewards must
    agree at every move.

    A referee says how its game ended and the first player's reward, and the legal moves by their
    actions; `pick(number, referee, moves)` chooses one of these. Returns the last states and how
    often each ending came up.
    """
    step, look = compiled
    states = padded(stack([state]), batch)
    over, reasons = [False] * len(referees), collections.Counter()
    while not all(over):
        masks, ended, rewards = map(np.asarray, look(states))
        actions = np.zeros(batch, np.int32)
        for number, referee in enumerate(referees):
            if over[number]:
                continue
            reason, reward = referee.ending()
            assert endings[ended[number]] == reason, str(referee)
            assert rewards[number].tolist() == [reward, -reward], str(referee)
            if reason:
                over[number] = True
                reasons[reason] += 1
                continue
            moves = referee.moves()
            assert np.flatnonzero(masks[number]).tolist() == sorted(moves), str(referee)
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
    step, look = programs(game)
    states, rng = padded(stack([game.init()]), batch), np.random.default_rng(5 + seed)
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
