"""Makes games from their settings or by name. A game's module is imported when the game is made."""

import inspect
from typing import Any

from azero.config import convert, find
from azero.games.game import Game
from azero.games.settings import GameConfig

SIDES = {
    "go": ("Black", "White"),
    "shogi": ("Black", "White"),
    "chess": ("White", "Black"),
    "minichess": ("White", "Black"),
    "tictactoe": ("X", "O"),
}
"""Names of the first and the second mover, where they have names."""


def build(config: GameConfig) -> Game:
    """Make the game of `config`.

    Raises:
      ValueError: an option is out of range.
    """
    return find(config.RULES)(**config.options())


def make(name: str, **options: Any) -> Game:
    """Make the game `name` ("animal-shogi" or "animal_shogi") with options of the class of its
    rules, e.g. `make("go", size=9, komi=7.0)`.

    Raises:
      ValueError: there is no such game or option, or an option is of another type or out of range.
    """
    try:
        rules = find(GameConfig.kind(name).RULES)
    except ValueError as error:
        raise ValueError(
            f"unknown game {name!r}; the games are: {', '.join(sorted(GameConfig.KINDS))}"
        ) from error
    known = inspect.signature(rules, eval_str=True).parameters
    if unknown := [option for option in options if option not in known]:
        raise ValueError(
            f"make({name!r}) has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}"
        )
    source = f"make({name!r})"
    return rules(
        **{
            option: convert(value, known[option].annotation, option, source)
            for option, value in options.items()
        }
    )


def side_names(name: str) -> tuple[str, str]:
    """Return the names of the first and the second mover of the game `name`."""
    return SIDES.get(name, ("the first player", "the second player"))
