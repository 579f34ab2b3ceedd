"""Finished games are put together from chunks exactly as a loop over slots and moves would."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from replay_games import random_chunk

from azero.play.trajectory import NO_NETWORK, Assembler, Games, Step, sparse_policy


class SlowAssembler:
    """The same with lists: what `Assembler` must agree with."""

    def __init__(self, slots: int) -> None:
        self.open: list[list[dict[str, Any]]] = [[] for _ in range(slots)]
        self.networks: list[list[int]] = [[] for _ in range(slots)]

    def add(self, chunk: Step, network: int) -> list[tuple[list[dict[str, Any]], Any]]:
        done = []
        for move in range(chunk.finished.shape[0]):
            for slot, plies in enumerate(self.open):
                plies.append({name: getattr(chunk, name)[move, slot] for name in Games._fields[:8]})
                self.networks[slot].append(network)
                if chunk.finished[move, slot]:
                    span = (self.networks[slot][0], self.networks[slot][-1])
                    done.append((list(plies), (chunk.rewards[move, slot], chunk.resigned[move, slot], chunk.can_resign[move, slot], span)))
                    plies.clear()
                    self.networks[slot].clear()
        return done


def assert_same(games: Games, expected: list[tuple[list[dict[str, Any]], Any]]) -> None:
    assert games.length.tolist() == [len(plies) for plies, _ in expected]
    for game, start in enumerate(games.starts):
        plies, (result, resigned, can_resign, span) = expected[game]
        for name in Games._fields[:8]:
            rows = getattr(games, name)[start : start + len(plies)]
            np.testing.assert_array_equal(rows, np.stack([ply[name] for ply in plies]), err_msg=name)
        np.testing.assert_array_equal(games.result[game], result)
        assert (games.resigned[game], games.can_resign[game]) == (resigned, can_resign)
        assert tuple(games.network[game]) == span, "the networks of the first and the last move"


@pytest.mark.parametrize(("moves", "finish"), [(1, 0.2), (4, 0.05), (16, 0.3), (7, 0.9)])
def test_agrees_with_a_loop(moves: int, finish: float) -> None:
    random = np.random.default_rng(moves)
    fast, slow = Assembler(6), SlowAssembler(6)
    count = 0
    for network in range(25):
        chunk = random_chunk(random, moves, 6, finish)
        games = fast.add(chunk, network)
        assert_same(games, slow.add(chunk, network))
        assert games.number.tolist() == list(range(count, count + len(games.length)))
        count += len(games.length)
        assert fast.num_pending == sum(map(len, slow.open))
    assert count > 10


def test_state_continues_the_same_games() -> None:
    random = np.random.default_rng(3)
    chunks = [random_chunk(random, 5, 4, 0.08) for _ in range(20)]
    whole = Assembler(4)
    for network, chunk in enumerate(chunks[:10]):
        whole.add(chunk, network)
    state = {name: value.copy() for name, value in whole.state_dict().items()}
    assert state["length"].sum() == len(state["column.action"]) > 0
    resumed = Assembler(4)
    resumed.load_state_dict(state)
    for network, chunk in enumerate(chunks[10:], 10):
        for mine, theirs in zip(resumed.add(chunk, network), whole.add(chunk, network), strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(resumed.state_dict()[name], value, err_msg=name)


def test_state_before_the_first_chunk() -> None:
    resumed = Assembler(3)
    resumed.load_state_dict(Assembler(3).state_dict())
    assert len(resumed.add(random_chunk(np.random.default_rng(0), 2, 3, 1.0), network=0).length) == 6


def test_state_that_does_not_say_which_network_began_a_game() -> None:
    chunk = random_chunk(np.random.default_rng(0), 3, 2, 0.0)
    assembler, resumed = Assembler(2), Assembler(2)
    assembler.add(chunk, network=4)
    state = assembler.state_dict()
    del state["network"]
    resumed.load_state_dict(state)
    assert resumed.add(chunk._replace(finished=np.ones((3, 2), bool)), network=5).network.tolist() == [[NO_NETWORK, 5]] * 2 + [[5, 5]] * 4


def test_state_of_other_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="3 slots, not of 4"):
        Assembler(4).load_state_dict(Assembler(3).state_dict())


def test_memory_follows_the_longest_unfinished_game() -> None:
    assembler = Assembler(8)
    for _ in range(200):
        assembler.add(random_chunk(np.random.default_rng(1), 4, 8, 0.0)._replace(finished=np.ones((4, 8), bool)), network=0)
    assert assembler._capacity <= 8


def test_sparse_policy_keeps_the_largest_and_renormalises() -> None:
    weights = jnp.asarray([[0.0, 0.5, 0.25, 0.25 - 1e-3, 1e-3], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]], jnp.float32)
    index, share = sparse_policy(weights, 3)
    assert (index.dtype, share.dtype) == (jnp.int16, jnp.float16)
    assert index.tolist() == [[1, 2, 3], [2, -1, -1], [-1, -1, -1]]
    np.testing.assert_allclose(share.sum(axis=1), [1, 1, 0], atol=1e-3)
    np.testing.assert_allclose(share[0], np.asarray([0.5, 0.25, 0.249]) / 0.999, atol=1e-3)
    assert sparse_policy(weights, 99)[0].shape == (3, 5)
