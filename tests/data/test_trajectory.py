"""Finished games are put together from chunks exactly as a loop over slots and moves would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from policy_words import split_words
from replay_games import random_chunk

from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import NO_NETWORK, Assembler, Games, Step

COLUMNS = Games._fields[:7]


class SlowAssembler:
    """The same with lists: what `Assembler` must agree with."""

    def __init__(self, slots: int) -> None:
        self.open: list[list[dict[str, Any]]] = [[] for _ in range(slots)]
        self.networks: list[list[int]] = [[] for _ in range(slots)]

    def add(self, chunk: Step, network: int) -> list[tuple[list[dict[str, Any]], Any]]:
        done = []
        for move in range(chunk.finished.shape[0]):
            for slot, plies in enumerate(self.open):
                ply = {
                    name: getattr(chunk, name)[move, slot]
                    for name in COLUMNS
                    if name != "policy_count"
                }
                words = chunk.policy[move, slot]
                words = words[words != 0] if ply["is_target"] else words[:0]
                plies.append(ply | {"policy": words, "policy_count": len(words)})
                self.networks[slot].append(network)
                if chunk.finished[move, slot]:
                    span = (self.networks[slot][0], self.networks[slot][-1])
                    done.append(
                        (
                            list(plies),
                            (
                                chunk.rewards[move, slot],
                                chunk.resigned[move, slot],
                                chunk.can_resign[move, slot],
                                span,
                            ),
                        )
                    )
                    plies.clear()
                    self.networks[slot].clear()
        return done


def assert_same(games: Games, expected: list[tuple[list[dict[str, Any]], Any]]) -> None:
    assert games.length.tolist() == [len(plies) for plies, _ in expected]
    for game, start in enumerate(games.starts):
        plies, (result, resigned, can_resign, span) = expected[game]
        for name in COLUMNS:
            rows = getattr(games, name)[start : start + len(plies)]
            np.testing.assert_array_equal(
                rows, np.stack([ply[name] for ply in plies]), err_msg=name
            )
        words = [word for ply in plies for word in ply["policy"]]
        end = int(games.policy_count[: start + len(plies)].sum())
        assert games.policy[end - len(words) : end].tolist() == words
        np.testing.assert_array_equal(games.result[game], result)
        assert (games.resigned[game], games.can_resign[game]) == (resigned, can_resign)
        assert tuple(games.network[game]) == span, "the networks of the first and the last move"


@pytest.mark.parametrize(("moves", "finish"), [(1, 0.2), (4, 0.05), (16, 0.3), (7, 0.9)])
def test_agrees_with_a_loop(moves: int, finish: float, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(moves)
    fast, slow = Assembler(6), SlowAssembler(6)
    count = 0
    monkeypatch.setattr("azero.selfplay.trajectory._FEW_WORDS", 20)
    for network in range(25):
        chunk = random_chunk(random, moves, 6, finish)
        games = fast.add(chunk, network)
        assert_same(games, slow.add(chunk, network))
        assert games.number.tolist() == list(range(count, count + len(games.length)))
        count += len(games.length)
        assert fast.state_dict()["length"].tolist() == [len(plies) for plies in slow.open]
        live = sum(len(ply["policy"]) for plies in slow.open for ply in plies)
        assert fast._num_live == live and fast._num_words <= max(20, 2 * live)
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
        for mine, theirs in zip(
            resumed.add(chunk, network), whole.add(chunk, network), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(resumed.state_dict()[name], value, err_msg=name)


def test_state_before_the_first_chunk() -> None:
    resumed = Assembler(3)
    resumed.load_state_dict(Assembler(3).state_dict())
    assert (
        len(resumed.add(random_chunk(np.random.default_rng(0), 2, 3, 1.0), network=0).length) == 6
    )


def test_state_that_does_not_say_which_network_began_a_game() -> None:
    chunk = random_chunk(np.random.default_rng(0), 3, 2, 0.0)
    assembler, resumed = Assembler(2), Assembler(2)
    assembler.add(chunk, network=4)
    state = assembler.state_dict()
    del state["network"]
    resumed.load_state_dict(state)
    assert (
        resumed.add(chunk._replace(finished=np.ones((3, 2), bool)), network=5).network.tolist()
        == [[NO_NETWORK, 5]] * 2 + [[5, 5]] * 4
    )


def test_state_of_other_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="3 slots, not of 4"):
        Assembler(4).load_state_dict(Assembler(3).state_dict())


def test_memory_follows_the_longest_unfinished_game() -> None:
    assembler = Assembler(8)
    for _ in range(200):
        assembler.add(
            random_chunk(np.random.default_rng(1), 4, 8, 0.0)._replace(
                finished=np.ones((4, 8), bool)
            ),
            network=0,
        )
    assert assembler._capacity <= 8


def test_state_of_an_older_checkpoint_has_its_policies_as_words() -> None:
    """Checkpoints of before have the most probable moves of every position, targets or not, in
    columns of their own."""
    chunk = random_chunk(np.random.default_rng(5), 4, 3, 0.0)._replace(
        is_target=np.ones((4, 3), bool)
    )
    assembler, resumed, divided = Assembler(3), Assembler(3), Assembler(3)
    assembler.add(chunk._replace(policy=words_of(*as_slots(chunk.policy))), network=1)
    state = assembler.state_dict()
    rows = state.pop("policy"), state.pop("column.policy_count")
    index, weight = np.full((12, 6), -1, np.int16), np.zeros((12, 6), np.float16)
    place = (
        np.repeat(np.arange(12), rows[1]),
        np.concatenate([np.arange(count) for count in rows[1]]),
    )
    action, share = split_words(rows[0])
    index[place], weight[place] = action, share.astype(np.float16)
    older = state | {"column.policy_index": index, "column.policy_weight": weight}
    resumed.load_state_dict(older)
    divided.load_state_dict(Assembler.redistribute([older], np.arange(3)))
    for name, value in assembler.state_dict().items():
        np.testing.assert_array_equal(resumed.state_dict()[name], value, err_msg=name)
        np.testing.assert_array_equal(divided.state_dict()[name], value, err_msg=name)


def as_slots(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return actions and float16 weights, as they were stored before."""
    action, _ = split_words(words)
    return action, np.linspace(0.1, 0.9, action.size).reshape(action.shape).astype(np.float16)
