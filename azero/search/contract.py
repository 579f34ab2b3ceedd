"""The check of a search against the contract: what it returns for a few positions."""

from typing import Any

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.leaf import uniform_leaf
from azero.search.search import SearchOutput
from azero.search.settings import SearchConfig
from azero.types import Array, PyTree

_POSITIONS = 4
"""The first position has no illegal move in many games; those after it do."""

_ROUNDING = 1e-3
"""How far numbers may be from their bounds."""


def check_search(config: SearchConfig, game: Game) -> None:
    """Search the first positions of a game without a network. The searches of the package are not
    checked: they are tested.

    Raises:
      ValueError: what the search returns has other shapes or types than `SearchOutput` says; it has
        a weight or visits on an illegal move, or would play one; its weights are negative or do not
        sum to one; or a value is not in [-1, 1].
    """
    if type(config).__module__ == SearchConfig.__module__:
        return
    roots, illegal, is_over, moves = jax.jit(lambda: _first_positions(game))()
    search = config.build(game, uniform_leaf(game))
    output = jax.jit(lambda key: _without_tree(search({}, key, roots)))(jax.random.key(0))
    if not isinstance(output, SearchOutput):
        raise ValueError(
            f"search.name {config.name} returns a {type(output).__name__}, not a SearchOutput "
            "(azero/search/search.py)"
        )
    _check_types(config, game, output)
    _check_numbers(config, output, ~is_over)
    _check_moves(config, game, output, illegal, moves)


def _check_types(config: SearchConfig, game: Game, output: SearchOutput) -> None:
    one, all_moves = (_POSITIONS,), (_POSITIONS, game.num_actions)
    for name, kind, shape in (
        ("action", "int32", one),
        ("weights", "float32", all_moves),
        ("visits", "int32", all_moves),
        ("value", "float32", one),
        ("best_child_value", "float32", one),
    ):
        found = getattr(output, name)
        if (found.dtype, found.shape) != (kind, shape):
            raise ValueError(
                f"search.name {config.name}: its {name} for {_POSITIONS} positions is "
                f"{found.dtype}{list(found.shape)}, not {kind}{list(shape)} "
                "(azero/search/search.py)"
            )


def _check_numbers(config: SearchConfig, output: SearchOutput, is_ongoing: Array) -> None:
    """Check the weights and values of the positions whose game is not over, bool[B]."""
    for name, low in (("weights", 0), ("value", -1), ("best_child_value", -1)):
        found = getattr(output, name)[is_ongoing]
        wrong = ~((found >= low - _ROUNDING) & (found <= 1 + _ROUNDING))
        if wrong.any():
            raise ValueError(
                f"search.name {config.name}: {found[wrong][0]:g} in its {name} is not from {low} "
                "to 1 (azero/search/search.py)"
            )
    total = output.weights[is_ongoing].sum(axis=-1)
    wrong = jnp.abs(total - 1) > _ROUNDING
    if wrong.any():
        raise ValueError(
            f"search.name {config.name}: its weights sum to {total[wrong][0]:g} in a position, not "
            "to 1 (azero/search/search.py)"
        )


def _check_moves(
    config: SearchConfig, game: Game, output: SearchOutput, illegal: Array, moves: Array
) -> None:
    """Check that nothing is on the `illegal` moves bool[B, A] of the positions after `moves`."""
    played = jax.nn.one_hot(output.action, game.num_actions)
    for name, found in (("weights", output.weights), ("visits", output.visits), ("action", played)):
        wrong = illegal & (found != 0)
        if wrong.any():
            root, move = (int(index[0]) for index in jnp.nonzero(wrong))
            before = moves[:root].tolist() or "none"
            raise ValueError(
                f"search.name {config.name}: its {name} have the illegal move {move} of "
                f"{game.name} (moves before it: {before}); all that a search returns is zero there "
                "(azero/search/search.py)"
            )


def _without_tree(output: Any) -> Any:
    return output._replace(tree=None) if isinstance(output, SearchOutput) else output


def _first_positions(game: Game) -> tuple[PyTree, Array, Array, Array]:
    """Play the first legal move again and again.

    Returns:
      The states[B]; their illegal moves bool[B, A], none once the game is over; bool[B], whether it
        is; the moves int32[B].
    """

    def play(state: PyTree, _: None) -> tuple[PyTree, tuple[PyTree, Array, Array, Array]]:
        legal, is_over = game.legal_action_mask(state), game.is_terminal(state)
        move = jnp.argmax(legal).astype(jnp.int32)
        return game.step(state, move), (state, ~legal & ~is_over, is_over, move)

    return jax.lax.scan(play, game.init(), length=_POSITIONS)[1]
