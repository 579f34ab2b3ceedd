"""Tic-tac-toe against its known solution."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.tictactoe.rules import TicTacToe


def test_all_positions_and_the_value() -> None:
    """Walk the whole game: 5,478 positions (known), 958 of them final, and a draw with best
    play."""
    game = TicTacToe()

    @jax.jit
    @jax.vmap
    def expand(state):  # type: ignore[no-untyped-def]
        after = jax.vmap(game.step, in_axes=(None, 0))(state, jnp.arange(9, dtype=jnp.int32))
        return (
            after.boards,
            game.legal_action_mask(state),
            game.is_terminal(state),
            game.rewards(state),
            game.to_play(state),
        )

    states = [np.zeros(2, np.uint32)]
    index = {states[0].tobytes(): 0}
    rows: list[tuple[list[int], float, int]] = []
    while len(rows) < len(states):
        chunk = states[len(rows) : len(rows) + 1024]
        padded = np.stack(chunk + [states[0]] * (1024 - len(chunk)))
        boards, legal, over, rewards, to_play = map(
            np.asarray, expand(type(game.init())(boards=jnp.asarray(padded)))
        )
        for number in range(len(chunk)):
            children = []
            if not over[number]:
                for child in boards[number][legal[number]]:
                    if child.tobytes() not in index:
                        index[child.tobytes()] = len(states)
                        states.append(child)
                    children.append(index[child.tobytes()])
            rows.append((children, float(rewards[number][0]), int(to_play[number])))
    assert len(states) == 5478
    assert sum(not children for children, _, _ in rows) == 958
    value = [0.0] * len(rows)
    for number in sorted(range(len(rows)), key=lambda n: -int(np.bitwise_count(states[n]).sum())):
        children, reward, mover = rows[number]
        value[number] = (max if mover == 0 else min)(
            (value[successor] for successor in children), default=reward
        )
    assert value[0] == 0.0


def test_diagram_and_squares() -> None:
    game = TicTacToe()
    state = game.step(game.step(game.init(), jnp.int32(4)), jnp.int32(0))
    assert game.format_board(state) == "O . .\n. X .\n. . ."
    assert [game.format_action(state, action) for action in (0, 4, 8)] == ["a3", "b2", "c1"]
