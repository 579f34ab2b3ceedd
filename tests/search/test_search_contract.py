"""A search of one's own that has weights on illegal moves is refused before a run learns from
them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import pytest
from small_runs import tictactoe

from azero import mesh
from azero.games.game import Game
from azero.games.table import make
from azero.search import contract
from azero.search.contract import check_search
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.search.settings import PuctConfig, SearchConfig
from azero.train.programs import Programs


@dataclass(frozen=True)
class PriorConfig(SearchConfig):
    """A search of one's own: the leaf's policy, in parts of the output without the rules."""

    MAKER: ClassVar[str] = f"{__name__}:make_prior"

    name: Literal["prior"] = "prior"
    forgets: str = ""


def make_prior(config: PriorConfig, game: Game, leaf: LeafFn) -> SearchFn:
    def search(params: Any, key: jax.Array, roots: Any) -> SearchOutput:
        logits, value = leaf(params, key, roots)
        legal = jax.vmap(game.legal_action_mask)(roots)

        def mask(part: str) -> jax.Array:
            return jnp.ones_like(legal) if part == config.forgets else legal

        action = jnp.argmax(jnp.where(mask("action"), logits, -jnp.inf), axis=-1)
        weights = jax.nn.softmax(jnp.where(mask("weights"), logits, -jnp.inf))
        visits = mask("visits").astype(jnp.int32)
        return SearchOutput(action.astype(jnp.int32), weights, visits, value, value, None)

    return search


@pytest.mark.parametrize("part", ["weights", "visits", "action"])
def test_a_part_with_an_illegal_move_is_named(part: str) -> None:
    game = make("tictactoe")
    check_search(PriorConfig(), game)
    with pytest.raises(ValueError, match=rf"search.name prior: its {part} have the illegal move 0"):
        check_search(PriorConfig(forgets=part), game)


def test_what_is_no_search_output_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PriorConfig, "build", lambda *_: lambda params, key, roots: (key, key))
    with pytest.raises(ValueError, match=r"search.name prior returns a tuple, not a SearchOutput"):
        check_search(PriorConfig(), make("tictactoe"))


def changed(part: str, change: Callable[[jax.Array], jax.Array]) -> Callable[..., SearchFn]:
    """Make the maker of a search with a change of one part of its results."""

    def make_wrong(*arguments: Any) -> SearchFn:
        search = make_prior(*arguments)

        def wrong(*inputs: Any) -> SearchOutput:
            output = search(*inputs)
            return output._replace(**{part: change(getattr(output, part))})

        return wrong

    return make_wrong


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("value", lambda value: value[:, None], r"is float32\[4, 1\], not float32\[4\]"),
        ("action", lambda action: action.astype(jnp.float32), r"is float32\[4\], not int32\[4\]"),
        ("visits", lambda visits: visits * 0.5, r"is float32\[4, 9\], not int32\[4, 9\]"),
        ("weights", lambda weights: weights[:, 1:], r"is float32\[4, 8\], not float32\[4, 9\]"),
        (
            "weights",
            lambda weights: 100 * weights,
            "prior: 11.1111 in its weights is not from 0 to 1",
        ),
        ("weights", lambda weights: -weights, "prior: -0.111111 in its weights is not from 0 to 1"),
        ("weights", lambda weights: 0.5 * weights, "prior: its weights sum to 0.5 .*, not to 1"),
        ("value", lambda value: value + 3, "prior: 3 in its value is not from -1 to 1"),
        ("best_child_value", lambda value: value * jnp.nan, "nan in its best_child_value is not"),
    ],
)
def test_a_part_that_does_not_fit_the_contract_is_named(
    part: str,
    change: Callable[[jax.Array], jax.Array],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PriorConfig, "build", changed(part, change))
    with pytest.raises(ValueError, match=f"search.name prior: .*its {part}.*") as error:
        check_search(PriorConfig(), make("tictactoe"))
    assert error.match(message)


def test_a_run_is_refused_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchConfig, "KINDS", {**SearchConfig.KINDS, "prior": "here"})
    config = dataclasses.replace(tictactoe(), search=PriorConfig(forgets="weights"))
    with pytest.raises(ValueError, match=r"of tictactoe \(moves before it: \[0\]\)"):
        Programs(config, mesh.make_mesh())


def test_searches_of_the_package_are_not_searched_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(contract, "_first_positions")
    check_search(PuctConfig(), make("tictactoe"))
