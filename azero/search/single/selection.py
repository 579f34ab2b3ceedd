"""Selection rules of the tree of one game: AlphaGo (2016), AlphaGo Zero, AlphaZero, engines, and
Gumbel AlphaZero.

A rule's `parameters` determine how `azero.search.single.compiled` chooses edges; its methods read
the result of a search. For the same settings the rules equal those of `azero.search.batched.puct`
and `azero.search.batched.gumbel`, which search many games at once; the PUCT formula is shared.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from azero.config import check_range
from azero.search.batched.gumbel import halving_schedule
from azero.search.puct import UNVISITED_VALUES, Unvisited, unvisited_of
from azero.search.settings import GumbelConfig, MctxPuctConfig, PuctConfig, SearchConfig
from azero.search.single.columns import ALPHAGO2016, ALPHAGO_ZERO, ALPHAZERO, GUMBEL, Parameters
from azero.search.single.node import Node

FirstPlay = Literal["zero", "parent"]
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Puct:
    """Q + c P sqrt(N) / (1 + n), with values in [-1, 1].

    The default is AlphaZero's c with a first-play reduction.
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

    @property
    def parameters(self) -> Parameters:
        """What compiled code needs."""
        return Parameters(
            ALPHAGO_ZERO if self.form == "alphago_zero" else ALPHAZERO,
            c_puct=float(self.c_puct),
            c_base=float(self.c_base),
            c_init=float(self.c_init),
            unvisited=UNVISITED_VALUES.get(self.unvisited, math.nan),
            reduction=float(self.reduction),
            variance_scale=float(self.variance_scale),
            stdev_prior=float(self.stdev_prior),
            stdev_prior_weight=float(self.stdev_prior_weight),
        )

    def values(self, node: Node) -> np.ndarray:
        """Return Q of the tried edges: float64[tried]."""
        return mean_values(node)

    def value(self, node: Node) -> float:
        """Return the node's value for the side to move."""
        return node.value

    def order(self, node: Node) -> list[int]:
        """Return the tried edges, the most visited first, of equals the more probable ones."""
        return np.lexsort((-node.priors[: node.tried], -node.visits)).tolist()


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
        check_range(self, "", "c_puct", 0)

    @property
    def parameters(self) -> Parameters:
        """What compiled code needs."""
        return Parameters(
            ALPHAGO2016,
            c_puct=float(self.c_puct),
            unvisited=0.0 if self.fpu == "zero" else math.nan,
            mixing=float(self.mixing),
        )

    def values(self, node: Node) -> np.ndarray:
        """Return Q of the tried edges: float64[tried]; a part without visits counts as 0."""
        edges = node.edges
        by_network = edges["network_sums"] / np.maximum(edges["network_visits"], 1.0)
        by_rollout = edges["sums"] / np.maximum(edges["visits"], 1.0)
        return (1.0 - self.mixing) * by_network + self.mixing * by_rollout

    def value(self, node: Node) -> float:
        """Return the mean of Q over the visits, for the side to move."""
        return float((self.values(node) * node.visits).sum() / max(1, node.total_visits))

    def order(self, node: Node) -> list[int]:
        """Return the tried edges, the most visited first, of equals those with the better Q."""
        keys = (node.actions[: node.tried], self.values(node), node.visits)
        return np.lexsort(keys)[::-1].tolist()


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

    @property
    def parameters(self) -> Parameters:
        """What compiled code needs."""
        return Parameters(GUMBEL, c_visit=float(self.c_visit), c_scale=float(self.c_scale))

    def values(self, node: Node) -> np.ndarray:
        """Return Q of the tried edges: float64[tried]."""
        return mean_values(node)

    def value(self, node: Node) -> float:
        """Return the node's value for the side to move."""
        return node.value

    def rounds(
        self, root: Node, num_simulations: int | None, width: Callable[[], int]
    ) -> Iterator[list[int]]:
        """Yield the edges of the unvisited `root` to follow next, at most `width()` at a time.

        They lie in disjoint subtrees. The results of one list must be backed up before the next.
        """
        num_simulations = num_simulations or self.num_simulations
        num_moves = len(root.actions)
        for considered, rounds in halving_schedule(self.max_considered, num_simulations):
            # Before the first visits the edges are sorted by priors, and so by scores.
            edges = self.order(root) if root.tried else list(range(num_moves))
            edges = edges[:considered]
            most = root.visits.max(initial=0.0)
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
        return np.lexsort((-scores, -node.visits)).tolist()

    def improved_policy(self, node: Node) -> np.ndarray:
        """Return softmax(log P + sigma(q)) over `node.actions`: float64[L] (GUM equation 11)."""
        logits = self._logits(node)
        odds = np.exp(logits - logits.max())
        return odds / odds.sum()

    def _logits(self, node: Node) -> np.ndarray:
        """Return log P + (c_visit + max N) c_scale q: float64[L] (GUM equation 8, appendix D).

        q in [0, 1] is Q where visited and v_mix elsewhere.
        """
        tried, value, visits = node.tried, node.own_value, node.visits
        priors = np.maximum(node.priors.astype(np.float64), _TINY)
        qvalues = np.full(len(priors), value)
        if tried:
            found = mean_values(node)
            weighted = (priors[:tried] * found).sum() / priors[:tried].sum()
            qvalues[:] = (value + node.total_visits * weighted) / (1.0 + node.total_visits)
            qvalues[:tried] = found
        scale = (self.c_visit + visits.max(initial=0.0)) * self.c_scale
        return np.log(priors) + scale * 0.5 * (qvalues + 1.0)


Rule = Puct | Gumbel | AlphaGo2016
ENGINE = Puct(c_init=0.6)
"""The rule of engines: AlphaZero's with half of its exploration, which plays better with the small
networks that ship (docs/engines.md)."""


def mean_values(node: Node) -> np.ndarray:
    """Return W / N of the tried edges: float64[tried]."""
    return node.sums / node.visits


IN_ONE_TREE = (PuctConfig.MAKER, MctxPuctConfig.MAKER, GumbelConfig.MAKER)
"""Makers of the searches that have a rule here. Own settings may extend those of another search."""


def rule_of(config: SearchConfig, num_actions: int) -> Puct | Gumbel:
    """Return the rule of a run's search in a game of `num_actions` actions, without exploration at
    the root (noise, temperature, forced visits).

    Raises:
      ValueError: the search exists only for many games at once (mctx_gumbel, or one's own).
    """
    if not isinstance(config, GumbelConfig | PuctConfig) or config.MAKER not in IN_ONE_TREE:
        raise ValueError(
            f"search.name {config.name} searches many games at once and no single one; puct, "
            "gumbel and mctx_puct do both, and search=engine plays any network"
        )
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
