"""The games of a match as records that other programs read: SGF for Go, PGN for chess, CSA for shogi."""

from __future__ import annotations

import time
from collections.abc import Callable

from azero.config import GameConfig
from azero.evaluate.match_games import MatchGame
from azero.experiments.match_sgf import match_sgf
from azero.games.chess.pgn import RESULTS, format_pgn
from azero.games.game import Game
from azero.games.shogi import entering
from azero.games.shogi.csa import format_csa
from azero.games.shogi.text import Board, board_of_sfen
from azero.play.referee import PLAYED_OUT

COLOURS = {"chess": ("White", "Black")}
"""What the first and the second mover are called where that is not Black and White."""


def colours(game: Game) -> tuple[str, str]:
    """Return what the first and the second mover are called."""
    return COLOURS.get(game.name, ("Black", "White"))


def match_pgn(game: MatchGame, rules: GameConfig, board: Game, names: tuple[str, str]) -> str:
    """Return a game of chess as PGN text; `names` are those of the match's first and second player."""
    white, black = names if game.first_is_black else names[::-1]
    tags = {"Event": "azero match", "Date": time.strftime("%Y.%m.%d"), "Round": str(game.number), "White": white, "Black": black}
    tags |= {"PlyCount": str(len(game.actions)), "Termination": _termination(game)}
    first, second = game.rewards
    return format_pgn(game.actions, tags, RESULTS[int(first), int(second)])


def _termination(game: MatchGame) -> str:
    """Return the reason in the words of the PGN standard, section 9.8.1."""
    if not game.failed:
        return "normal"
    if "in time" in game.ending:
        return "time forfeit"
    return "rules infraction" if "illegal" in game.ending else "abandoned"


def match_csa(game: MatchGame, rules: GameConfig, board: Game, names: tuple[str, str]) -> str:
    """Return a game of shogi as CSA text; `names` are those of the match's first and second player."""
    black, white = names if game.first_is_black else names[::-1]
    return format_csa(game.actions, black=black, white=white, ending=_csa_ending(game, board))


def _csa_ending(game: MatchGame, rules: Game) -> str:
    """Return the special move that ends a game."""
    loser = "%+ILLEGAL_ACTION" if game.rewards[0] < 0 else "%-ILLEGAL_ACTION"
    if game.failed:
        return loser
    if game.ending != PLAYED_OUT:
        return "%TORYO"
    if game.reward == 0:
        return "%MAX_MOVES" if len(game.actions) >= rules.max_moves else "%SENNICHITE"
    board: Board = board_of_sfen("startpos")
    for action in game.actions:
        board = board.after(action)
    if not board.actions:
        return "%TSUMI"
    declared = entering.has_entered(board.position, board.frame[-1] * 0 + (0xFFFFFFFF if board.is_white else 0))
    # Whoever gave check all the time has lost by a fourfold repetition.
    return "%KACHI" if declared[0] and not board.is_check else loser


MatchRecord = Callable[[MatchGame, GameConfig, Game, tuple[str, str]], str]
"""Returns the text of a game, given the rules and the names of the match's first and second player."""

RECORDS: dict[str, tuple[str, MatchRecord]] = {"go": (".sgf", match_sgf), "chess": (".pgn", match_pgn), "shogi": (".csa", match_csa)}
"""By the name of the game: suffix and writer."""
