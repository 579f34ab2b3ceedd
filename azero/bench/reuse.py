"""The gain from kept trees: `python -m azero.bench.reuse go7 --visits 64` plays a network against
itself with AlphaGo Zero's PUCT, with the trees of one side kept from move to move."""

import dataclasses
import sys
from dataclasses import dataclass

import jax
import tyro
from tyro.conf import Positional

from azero.console.interrupts import end_in_one_line
from azero.match.compiled import make_match
from azero.match.elo import format_elo_difference
from azero.match.score import MatchResult
from azero.players.searches import match_leaf, search_settings
from azero.players.specs import NetworkSpec, load_player, parse_player, resolve
from azero.search.batched.reuse import make_new_trees


@dataclass(frozen=True)
class Arguments:
    """A match of a network that keeps its tree against itself with a new tree for every move."""

    player: Positional[str]
    """The network: a name of `azero models`, or checkpoint:DIR."""
    visits: int = 64
    """New simulations a move, of both sides."""
    games: int = 400
    """Games, half with each colour."""
    temperature_moves: int = 8
    """First moves that are sampled in proportion to the visits, so that the games differ."""
    seed: int = 0
    """Random seed."""


def run(arguments: Arguments) -> MatchResult:
    """Play the match; return the result of the side that keeps its trees.

    Raises:
      ValueError: the player is not a network of azero.
      CheckpointError: a checkpoint cannot be read.
    """
    given = parse_player(arguments.player)
    spec = resolve(given)[0] if isinstance(given, NetworkSpec) else given
    if not isinstance(spec, NetworkSpec):
        raise ValueError(
            f"{arguments.player!r} is not a network of azero, such as go9 or checkpoint:DIR"
        )
    loaded = load_player(spec)
    config, game = loaded.config, loaded.game
    leaf = match_leaf(config, game, config.network.build(game))
    plain = dataclasses.replace(
        search_settings(config, "alphago_zero"), num_simulations=arguments.visits
    ).replace(reuse_tree=False)
    kept = plain.replace(reuse_tree=True)
    match = make_match(
        game,
        kept.build(game, leaf),
        plain.build(game, leaf),
        arguments.games,
        temperature_moves=arguments.temperature_moves,
        new_trees=(make_new_trees(kept, game, arguments.visits), None),
    )
    key = jax.random.key(arguments.seed)

    def report(moves: int, finished: int) -> None:
        print(f"{moves} moves, {finished} games over", file=sys.stderr, flush=True)

    return match(loaded.params, loaded.params, key, report).result


if __name__ == "__main__":
    with end_in_one_line():
        result = run(tyro.cli(Arguments))
    print(f"kept trees against new ones: {result}")
    print(f"Elo {format_elo_difference(result.total.score, *result.total.interval)}")
