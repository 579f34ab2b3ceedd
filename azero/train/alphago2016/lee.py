"""The value networks of AlphaGo Lee: each learns from games of the whole player with the one before
(AGZ methods, 'AlphaGo versions')."""

from pathlib import Path

from azero.data.records.dataset import Dataset
from azero.data.records.filters import Filters, Fractions
from azero.data.records.importing import run_import
from azero.data.records.requests import ImportRequest
from azero.match.matches import MatchRequest, play_match
from azero.report.paper import claim, format_mean
from azero.train.alphago2016.config import stage_config
from azero.train.alphago2016.figures import player_with
from azero.train.alphago2016.measures import ERROR_NOTE, search_games, value_error
from azero.train.alphago2016.stages import Outcome, StageContext

_SPLIT = Fractions(validation=0.05, test=0.1)
"""Games of the player that its value network does not learn from (the paper gives none)."""


def iterate_value_networks(context: StageContext) -> Outcome:
    """Train value networks on games of the whole player, each with the one before in it (AGZ
    methods, 'AlphaGo versions': AlphaGo Lee)."""
    settings, value, lines = context.settings.lee, context.directory("value"), []
    for number in range(1, settings.iterations + 1):
        place = context.directory("lee") / str(number)
        _play_itself(context, value, place / "games", number)
        game = context.settings.game
        filters = Filters(size=game.size, superko=game.superko, suicide=game.suicide)
        run_import(
            ImportRequest((place / "games",), place / "data", filters, _SPLIT), context.console
        )
        stage = f"lee/{number}/value"
        context.learn(stage, stage_config(context.settings, "value"), place / "data")
        networks = {"before": value, "after": context.directory(stage)}
        if Dataset.open(place / "data").shards("test"):
            lines += [
                claim(
                    f"iteration {number}, {name}",
                    format_mean(value_error(context, path, place / "data"), 1, 3),
                )
                for name, path in networks.items()
            ]
        value = context.directory(stage)
    notes = [ERROR_NOTE, f"{settings.games:,} games of the player for each; held-out ones measured"]
    return Outcome(rows=lines, notes=notes)


def _play_itself(context: StageContext, value: Path, out: Path, number: int) -> None:
    """Play games of the player with a value network against itself."""
    player, settings = player_with(context, "policy", value), context.settings.lee
    arguments = {
        **search_games(context),
        "games": settings.games,
        "random_plies": settings.random_plies,
        "seed": context.settings.seed + number,
        "first_name": "first",
        "second_name": "second",
    }
    play_match(MatchRequest(player, player, **arguments, out=out), context.console)
