"""The check of a search against the contract: what it returns for a few positions."""

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.leaf import uniform_leaf
from azero.search.settings import SearchConfig
from azero.types import Array, PyTree

_POSITIONS = 4
"""The first position has no illegal move in many games; those after it do."""


def check_search(config: SearchConfig, game: Game) -> None:
    """Search the first positions of a game without a network. The searches of the package are not
    checked: they are tested.

    Raises:
      ValueError: what the search returns has other shapes or types than `SearchOutput` says, or it
        has a weight or visits on an illegal move, or would play one.
    """
    if type(config).__module__ == SearchConfig.__module__:
        return
    roots, illegal, moves = jax.jit(lambda: _first_positions(game))()
    search = config.build(game, uniform_leaf(game))
    output = jax.jit(lambda key: search({}, key, roots)._replace(tree=None))(jax.random.key(0))
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


def _first_positions(game: Game) -> tuple[PyTree, Array, Array]:
    """Play the first legal move again and again.

    Returns:
      The states[B]; their illegal moves bool[B, A], none once the game is over; the moves int32[B].
    """

    def play(state: PyTree, _: None) -> tuple[PyTree, tuple[PyTree, Array, Array]]:
        legal = game.legal_action_mask(state)
        move = jnp.argmax(legal).astype(jnp.int32)
        return game.step(state, move), (state, ~legal & ~game.is_terminal(state), move)

    return jax.lax.scan(play, game.init(), length=_POSITIONS)[1]
