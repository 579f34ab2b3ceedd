"""The table of games, by name. A game's module is imported when the game is made."""

from __future__ import annotations

import importlib
from typing import Any

from azero.games.game import Game

GAMES = {
    "animal_shogi": "azero.games.animal_shogi.rules:AnimalShogi",
    "chess": "azero.games.chess.rules:Chess",
    "go": "azero.games.go.rules:Go",
    "minichess": "azero.games.minichess.rules:Minichess",
    "shogi": "azero.games.shogi.rules:Shogi",
    "tictactoe": "azero.games.tictactoe:TicTacToe",
}
"""The module and class of each game."""

SIDES = {
    "go": ("Black", "White"),
    "shogi": ("Black", "White"),
    "chess": ("White", "Black"),
    "minichess": ("White", "Black"),
    "tictactoe": ("X", "O"),
}
"""What the first and the second mover are called, where they have names."""


def make(name: str, **options: Any) -> Game:
    """Make the game `name` with its options, e.g. `make("go", size=9, komi=7.0)`.

    Raises:
      ValueError: the name is not in the table, or an option is out of range.
    """
    if name not in GAMES:
        raise ValueError(f"unknown game {name!r}; the games are: {', '.join(sorted(GAMES))}")
    module, _, rules = GAMES[name].partition(":")
    game: Game = getattr(importlib.import_module(module), rules)(**options)
    return game


def side_names(game: Game) -> tuple[str, str]:
    """Return what the first and the second mover of a game are called."""
    return SIDES.get(game.name, ("the first player", "the second player"))
