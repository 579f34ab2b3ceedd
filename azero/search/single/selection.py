"""Selection rules of the tree of one game: AlphaGo (2016), AlphaGo Zero, AlphaZero, engines, and
Gumbel AlphaZero.

A rule takes a node and returns the index of a tried edge, or `node.tried`, the best untried edge.
For the same settings the rules equal those of `azero.search.batched.puct` and
`azero.search.batched.gumbel`, which search many games at once; the PUCT formula is shared.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from azero.search.batched.gumbel import halving_schedule
from azero.search.puct import (
    UNVISITED_VALUES,
    Unvisited,
    alphago_zero_scale,
    alphazero_scale,
    deviation_factor,
    puct_score,
    reduced_value,
    unvisited_of,
)
from azero.search.settings import GumbelConfig, MctxGumbelConfig, PuctConfig, SearchConfig
from azero.search.single.node import Node

FirstPlay = Literal["zero", "parent"]
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Puct:
    """Q + c P sqrt(N) / (1 + n), with values in [-1, 1].

    The default is an engine's: AlphaZero's c, and a first-play reduction.
    """

    form: Literal["alphago_zero", "alphazero"] = "alphazero"
    """alphago_zero: c is c_puct and N the visits of all moves. alphazero:
    c = log((N + base + 1) / base) + init, and N counts the node's own evaluation too."""
    c_puct: float = 1.5
    """alphago_zero: see `PuctConfig.c_puct`."""
    c_base: float = 19652.0
    """alphazero: see form (AZ pseudocode)."""
    c_init: float = 1.25
    """alphazero: see form; as published, for values in [0, 1]; here it is doubled (AZ)."""
    unvisited: Unvisited = "reduction"
    """First-play urgency, the value of an untried move: the node's own less a reduction that grows
    with the probability already explored (KG), a loss (AZ), or a draw (AGZ)."""
    reduction: float = 0.2
    """reduction: the value is V - reduction sqrt(P explored) (KG: 0.2)."""
    variance_scale: float = 0.0
    """See `PuctConfig.variance_scale`; 0 is off. Virtual losses lower the mean of the values but
    are not in the sum of squares."""
    stdev_prior: float = 0.4
    """See `PuctConfig.stdev_prior`."""
    stdev_prior_weight: float = 2.0
    """See `PuctConfig.stdev_prior_weight`."""

    def __post_init__(self) -> None:
        for name, allowed in (
            ("form", ("alphago_zero", "alphazero")),
            ("unvisited", get_args(Unvisited)),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} is one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )

    def select(self, node: Node) -> int:
        """Return the edge with the highest score."""
        if node.tried == 0:
            return 0
        fresh = UNVISITED_VALUES.get(self.unvisited)
        if fresh is None:
            fresh = reduced_value(node.value, node.explored, self.reduction, math)
        tried, scale = node.tried, self._scale(node.total_visits)
        if self.variance_scale:
            scale *= self._deviation_factor(node)
        visits = node.visits[:tried]
        return _best_edge(node, node.sums[:tried] / visits, visits, scale, fresh)

    def values(self, node: Node) -> np.ndarray:
        """Return Q of the tried edges: float64[tried]."""
        return mean_values(node)

    def value(self, node: Node) -> float:
        """Return the node's value for the side to move."""
        return node.value

    def order(self, node: Node) -> list[int]:
        """Return the tried edges, the most visited first, of equals the more probable ones."""
        tried = node.tried
        order = np.lexsort((-node.evaluation.priors[:tried], -node.visits[:tried]))
        return [int(edge) for edge in order]

    def _scale(self, visits: int) -> Any:
        """Return c sqrt(N)."""
        if self.form == "alphago_zero":
            return alphago_zero_scale(visits, self.c_puct, math)
        # Twice the published c, because values are in [-1, 1] here and in [0, 1] there.
        return 2.0 * alphazero_scale(visits, self.c_base, self.c_init, math)

    def _deviation_factor(self, node: Node) -> float:
        """Return the factor of c for this node."""
        factor = deviation_factor(
            node.value,
            node.evaluation.value**2 + node.squares[: node.tried].sum(),
            1.0 + node.total_visits,
            self.variance_scale,
            self.stdev_prior,
            self.stdev_prior_weight,
            np,
        )
        return float(factor)


@dataclass(frozen=True)
class AlphaGo2016:
    """Q + c P sqrt(sum N_r) / (1 + N_r) (AG16 methods, "Search algorithm").

    Q = (1 - lambda) W_v / N_v + lambda W_r / N_r, of the value network and of rollouts.
    """

    c_puct: float = 5.0
    """Exploration constant (AG16: 5)."""
    mixing: float = 0.5
    """lambda: the share of rollouts in Q; 0 is the value network alone, 1 rollouts alone (AG16:
    0.5)."""
    fpu: FirstPlay = "zero"
    """First-play urgency, the Q of an untried move: 0 (AG16), or with "parent" the mean over the
    tried moves. With 0, a side that is behind tries every move once before any move twice, for
    which few rollouts do not suffice."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.mixing <= 1.0:
            raise ValueError(f"mixing lies in [0, 1], not {self.mixing}")
        if self.fpu not in get_args(FirstPlay):
            raise ValueError(f"fpu is {' or '.join(get_args(FirstPlay))}, not {self.fpu}")
        if not self.c_puct >= 0:
            raise ValueError(f"c-puct is at least 0, not {self.c_puct}")

    def select(self, node: Node) -> int:
        """Return the edge with the highest score."""
        if node.tried == 0:
            return 0
        scale = alphago_zero_scale(node.total_visits, self.c_puct, math)
        values = self.values(node)
        fresh = _mean(values, node) if self.fpu == "parent" else 0.0
        return _best_edge(node, values, node.visits[: node.tried], scale, fresh)

    def values(self, node: Node) -> np.ndarray:
        """Return Q of the tried edges: float64[tried]; a part without visits counts as 0."""
        tried = node.tried
        counts, sums = node.network_part()[:, :tried]
        by_network = sums / np.maximum(counts, 1.0)
        by_rollout = node.sums[:tried] / np.maximum(node.visits[:tried], 1.0)
        values: np.ndarray = (1.0 - self.mixing) * by_network + self.mixing * by_rollout
        return values

    def value(self, node: Node) -> float:
        """Return the mean of Q over the visits, for the side to move."""
        return _mean(self.values(node), node)

    def order(self, node: Node) -> list[int]:
        """Return the tried edges, the most visited first, of equals those with the better Q."""
        tried = node.tried
        keys = (node.evaluation.actions[:tried], self.values(node), node.visits[:tried])
        return [int(edge) for edge in np.lexsort(keys)[::-1]]


@dataclass(frozen=True)
class Gumbel:
    """Gumbel AlphaZero without its noise: sequential halving at the root.

    Below it the rule is that of `azero.search.batched.gumbel.interior_score`.
    """

    num_simulations: int
    """Simulations of a search without another limit."""
    max_considered: int = 16
    """Moves of the root that are searched (GUM: 16)."""
    c_visit: float = 50.0
    """See `GumbelConfig.c_visit`."""
    c_scale: float = 1.0
    """See `GumbelConfig.c_scale`."""

    def select(self, node: Node) -> int:
        """Return the edge whose share of visits is furthest below the improved policy (GUM equation
        14)."""
        tried = node.tried
        shares = self.improved_policy(node)[: tried + 1]
        shares[:tried] -= node.visits[:tried] / (1.0 + node.total_visits)
        return int(shares.argmax())

    def values(self, node: Node) -> np.ndarray:
        """Return Q of the tried edges: float64[tried]."""
        return mean_values(node)

    def value(self, node: Node) -> float:
        """Return the node's value for the side to move."""
        return node.value

    def rounds(
        self,
        root: Node,
        num_simulations: int | None,
        width: Callable[[], int],
    ) -> Iterator[list[int]]:
        """Yield the edges of the unvisited `root` to follow next, at most `width()` at a time.

        They lie in disjoint subtrees. The results of one list must be backed up before the next.
        """
        num_simulations = num_simulations or self.num_simulations
        num_moves = len(root.evaluation.actions)
        for considered, rounds in halving_schedule(self.max_considered, num_simulations):
            # Before the first visits the edges are sorted by priors, and so by scores.
            edges = self.order(root) if root.tried else list(range(num_moves))
            edges = edges[:considered]
            most = root.visits[: root.tried].max(initial=0.0)
            edges = [edge for edge in edges if not root.tried or root.visits[edge] == most]
            for _ in range(rounds):
                waiting = edges
                while waiting:
                    count = width()
                    yield waiting[:count]
                    waiting = waiting[count:]

    def order(self, node: Node) -> list[int]:
        """Return the tried edges, the most visited first, of equals by log P + sigma(q)."""
        scores = self._logits(node)[: node.tried]
        return np.lexsort((-scores, -node.visits[: node.tried])).tolist()

    def improved_policy(self, node: Node) -> np.ndarray:
        """Return softmax(log P + sigma(q)) over the node's moves: float64[L] (GUM equation 11)."""
        logits = self._logits(node)
        odds = np.exp(logits - logits.max())
        policy: np.ndarray = odds / odds.sum()
        return policy

    def _logits(self, node: Node) -> np.ndarray:
        """Return log P + (c_visit + max N) c_scale q: float64[L] (GUM equation 8, appendix D).

        q in [0, 1] is Q where visited and v_mix elsewhere.
        """
        tried, value = node.tried, node.evaluation.value
        priors = np.maximum(node.evaluation.priors.astype(np.float64), _TINY)
        qvalues = np.full(len(priors), value)
        visits = node.visits[:tried]
        if tried:
            found = mean_values(node)
            weighted = (priors[:tried] * found).sum() / priors[:tried].sum()
            qvalues[:] = (value + node.total_visits * weighted) / (1.0 + node.total_visits)
            qvalues[:tried] = found
        scale = (self.c_visit + visits.max(initial=0.0)) * self.c_scale
        return np.log(priors) + scale * 0.5 * (qvalues + 1.0)


Rule = Puct | Gumbel | AlphaGo2016
ENGINE = Puct()
"""The rule of engines."""


def mean_values(node: Node) -> np.ndarray:
    """Return W / N of the tried edges: float64[tried]."""
    values: np.ndarray = node.sums[: node.tried] / node.visits[: node.tried]
    return values


def _mean(values: np.ndarray, node: Node) -> float:
    """Return the mean of the tried edges' values over their visits; 0 without any."""
    return float((values * node.visits[: node.tried]).sum() / max(1, node.total_visits))


def _best_edge(
    node: Node,
    values: np.ndarray,
    visits: np.ndarray,
    scale: float,
    fresh: float,
) -> int:
    """Return the edge with the best PUCT score, where untried ones have the value `fresh`."""
    tried, priors = node.tried, node.evaluation.priors
    scores = puct_score(values, priors[:tried], visits, scale)
    best = int(scores.argmax())
    if tried == len(priors):
        return best
    return tried if fresh + scale * float(priors[tried]) > scores[best] else best


def rule_of(config: SearchConfig, num_actions: int) -> Puct | Gumbel:
    """Return the rule of a run's search in a game of `num_actions` actions, without exploration at
    the root (noise, temperature, forced visits).

    Raises:
      ValueError: the search exists only for many games at once (mctx_gumbel).
    """
    if isinstance(config, MctxGumbelConfig) or not isinstance(config, GumbelConfig | PuctConfig):
        problem = "searches many games at once and no single one"
        raise ValueError(f"search.name {config.name} {problem}; puct, gumbel and mctx_puct do both")
    if isinstance(config, GumbelConfig):
        return Gumbel(
            config.num_simulations,
            min(config.max_considered, num_actions),
            config.c_visit,
            config.c_scale,
        )
    unvisited, reduction = unvisited_of(config)
    rule = Puct(
        config.puct_form,
        unvisited=unvisited,
        reduction=reduction,
        variance_scale=config.variance_scale,
        stdev_prior=config.stdev_prior,
        stdev_prior_weight=config.stdev_prior_weight,
    )
    if config.puct_form == "alphago_zero":
        return dataclasses.replace(rule, c_puct=config.c_puct)
    return dataclasses.replace(rule, c_base=config.pb_c_base, c_init=config.pb_c_init)
