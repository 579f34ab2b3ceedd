"""Trees kept from move to move, in plain Python: what `azero.search.batched.reuse` has to equal."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import numpy as np
from search_toys import Node, Reference, best

from azero.search.puct import deviation_factor
from azero.search.settings import PuctConfig


class KeptReference(Reference):
    """One game's tree, kept from move to move, by the rule of PuctConfig."""

    def __init__(self, game: Any, leaf: Any, config: PuctConfig) -> None:
        super().__init__(game, leaf)
        self.config = config
        self.root: Node | None = None
        self.order: dict[int, int] = {}
        self.squares: dict[int, float] = {}
        self.noisy: dict[int, float] | None = None
        self._count = itertools.count()

    def node(self, state: Any) -> Node:
        node = super().node(state)
        self.order[id(node)] = next(self._count)
        self.squares[id(node)] = 0.0
        return node

    def simulate(self, node: Node, rule: Any, action: int | None = None) -> tuple[float, int]:
        value, player = super().simulate(node, rule, action)
        if not node.terminal:
            self.squares[id(node)] += value * value
        return value, player

    def begin(self, state: Any) -> dict[int, float]:
        """Make `state` the root, with the statistics that there are; return its priors."""
        legal = np.asarray(self.game.legal_action_mask(state))
        if self.root is not None and not any(legal[action] for action in self.root.logits):
            self.root = None
        if self.root is None:
            self.root = self.node(self.game.search_state(state))
        root, self.noisy = self.root, None
        for part in (root.logits, root.visits, root.value_sums, root.children):
            for action in [action for action in part if not legal[action]]:
                del part[action]
        return root.priors()

    def search(self, simulations: int) -> Node:
        assert self.root is not None
        for _ in range(simulations):
            self.simulate(self.root, self.rule)
        return self.root

    def play(self, action: int) -> None:
        """Keep the subtree of a move: its first nodes in the order of their evaluation."""
        assert self.root is not None
        child = self.root.children.get(action)
        self.root = None if child is None or child.terminal else child
        if self.root is not None:
            nodes = sorted(_nodes(self.root), key=lambda node: self.order[id(node)])
            kept = {id(node) for node in nodes[: self.config.kept_room]}
            for node in nodes:
                for action, below in list(node.children.items()):
                    if not below.terminal and id(below) not in kept:
                        del node.children[action]

    def rule(self, node: Node) -> int:
        config, is_root = self.config, node is self.root
        priors = self.noisy if is_root and self.noisy is not None else node.priors()
        total = sum(node.visits.values())
        mean = (node.value + sum(node.value_sums.values())) / (1 + total)
        is_zero = config.puct_form == "alphazero"
        if is_zero:
            scale = math.log((total + 2 + config.pb_c_base) / config.pb_c_base) + config.pb_c_init
            scale *= math.sqrt(1 + total)
        else:
            scale = config.c_puct * math.sqrt(max(total, 1))
        fresh = -1.0 if is_zero else 0.0
        if config.first_play == "reduced":
            explored = sum(priors[action] for action, count in node.visits.items() if count)
            noisy_root = is_root and config.dirichlet_fraction > 0
            fresh = mean - (0 if noisy_root else config.first_play_reduction) * math.sqrt(explored)
        if config.variance_scale:
            scale *= deviation_factor(
                mean,
                self.squares[id(node)] + node.value**2,
                1.0 + total,
                config.variance_scale,
                config.stdev_prior,
                config.stdev_prior_weight,
                np,
            )
        scores = {}
        for action, prior in priors.items():
            count = node.visits.get(action, 0)
            value = node.q(action) if count else fresh
            value = (1 + value) / 2 if is_zero else value
            lags = is_root and 0 < count < math.sqrt(config.forced_playouts * prior * total)
            scores[action] = math.inf if lags else value + scale * prior / (1 + count)
        return best(scores)


def _nodes(node: Node) -> list[Node]:
    below = [child for child in node.children.values() if not child.terminal]
    return [node, *itertools.chain.from_iterable(map(_nodes, below))]


def hashing_leaf(game: Any) -> Any:
    """A leaf for games with planes: logits in [-2, 2] and values in [-1, 1], drawn by the planes
    and by the parameter, a number."""

    def leaf(params: Any, key: Any, states: Any) -> Any:
        planes = jax.vmap(game.observe)(states).astype(np.float32)
        flat = planes.reshape(planes.shape[0], -1)
        code = flat @ np.sin(np.arange(1, flat.shape[1] + 1, dtype=np.float32) * 12.9898)
        spread = np.arange(1, game.num_actions + 2, dtype=np.float32) * 7.13
        mixed = np.float32(43.5453) * jax.numpy.sin(code[:, None] * spread + params)
        mixed = 2 * (mixed - jax.numpy.floor(mixed)) - 1
        return 2 * mixed[:, 1:], mixed[:, 0]

    return leaf
