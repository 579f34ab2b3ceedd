"""Trees of one game for tests: the random game with everything that a packed position needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from search_toys import Node, RandomTree, Rule, ToyState, best

from azero.mesh import make_mesh
from azero.search.leaf import SymmetryLeafFn
from azero.search.single.node import Ending
from azero.search.single.node import Node as TreeNode
from azero.search.single.packed import PackedRules
from azero.search.single.parallel import ParallelTree, TreeSettings


@dataclass(frozen=True)
class ShownTree(RandomTree):
    """The random game with planes that tell every position apart."""

    name: ClassVar[str] = "random tree"
    board_shape: ClassVar[tuple[int, int]] = (1, 1)
    num_symmetries: ClassVar[int] = 1

    def observe(self, state: ToyState) -> jax.Array:
        return ((state.code >> jnp.arange(32, dtype=jnp.uint32)) & 1 != 0).reshape(1, 1, 32)


def make_tree(game: Any, leaf: SymmetryLeafFn, **settings: Any) -> ParallelTree:
    """Return a tree on one device."""
    chosen = TreeSettings(**settings)
    mesh = make_mesh([jax.local_devices()[0]])
    evaluator = chosen.make_evaluator(game, leaf, {}, mesh=mesh)
    rules = PackedRules(game, chosen.batch)
    return ParallelTree(rules, evaluator.leaves(rules, chosen.edge_width), chosen)


def legal_of(game: Any, state: Any) -> np.ndarray:
    return np.asarray(game.legal_action_mask(state))


def grow(tree: ParallelTree, playouts: int) -> None:
    done = 0
    while done < playouts:
        done += tree.search(playouts - done)
    assert done == playouts


def total_value(node: TreeNode) -> float:
    return node.value * (1 + node.total_visits)


def nodes_below(root: TreeNode) -> list[TreeNode]:
    """Return the nodes of the tree below `root`, itself included."""
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found.append(node)
        todo.extend(child for child in node.children if isinstance(child, TreeNode))
    return found


def check_sums(node: TreeNode) -> None:
    """Check that every node's statistics are those of what lies below it: no virtual loss is left
    anywhere."""
    assert node.total_visits == node.visits.sum()
    np.testing.assert_allclose(total_value(node), node.own_value + node.sums.sum(), atol=1e-6)
    for edge in range(node.tried):
        child, visits = node.children[edge], node.visits[edge]
        assert visits >= 1
        if isinstance(child, Ending):
            sign = 1 - 2 * node.to_play
            np.testing.assert_allclose(node.sums[edge], visits * child.result * sign, atol=1e-6)
            np.testing.assert_allclose(
                node.edges["squares"][edge], visits * child.result**2, atol=1e-6
            )
        else:
            assert child is not None
            sign = 1 if child.to_play == node.to_play else -1
            assert visits == child.total_visits + 1
            np.testing.assert_allclose(node.sums[edge], sign * total_value(child), atol=1e-6)
            squares = child.own_value**2 + child.edges["squares"].sum()
            np.testing.assert_allclose(node.edges["squares"][edge], squares, atol=1e-6)
            check_sums(child)


def plain_rule(unvisited: str, c_base: float, c_init: float, reduction: float) -> Rule:
    """Return PUCT for the plain Python search, in the published form: values in [0, 1]."""

    def value_of_unvisited(node: Node, parent_visits: int) -> float:
        if unvisited == "reduction":
            priors = node.priors()
            own = (node.value + sum(node.value_sums.values())) / parent_visits
            return (
                1 + own - reduction * math.sqrt(sum(priors[action] for action in node.visits))
            ) / 2
        return {"loss": 0.0, "draw": 0.5}[unvisited]

    def rule(node: Node) -> int:
        parent_visits = 1 + sum(node.visits.values())
        c = math.log((parent_visits + c_base + 1) / c_base) + c_init
        fresh = value_of_unvisited(node, parent_visits)
        scores = {}
        for action, prior in node.priors().items():
            count = node.visits.get(action, 0)
            value = (1 + node.q(action)) / 2 if count else fresh
            scores[action] = value + c * prior * math.sqrt(parent_visits) / (1 + count)
        return best(scores)

    return rule
