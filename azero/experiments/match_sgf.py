"""The games of a match as SGF, with what the players thought of their moves."""

from __future__ import annotations

import time

from azero.config import GameConfig
from azero.evaluate.match_games import MatchGame
from azero.games.game import Game
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_write import Note, format_game, format_result, format_thought
from azero.play.referee import PLAYED_OUT


def match_sgf(game: MatchGame, rules: GameConfig, board: Game, names: tuple[str, str]) -> str:
    """Return a game of Go as SGF text; `names` are those of the match's first and second player."""
    notes = [Note()] * game.num_opening_moves
    notes += [Note(format_thought(decision.value, decision.visits, decision.line, board.board_shape)) for decision in game.decisions]
    last = "\n".join(word for word in ("" if game.ending == PLAYED_OUT else game.ending, game.disagreement) if word)
    if last and notes:
        notes[-1] = Note("\n".join(word for word in (notes[-1].comment, last) if word))
    record = GameRecord(
        name=f"game {game.number}",
        board_shape=board.board_shape,
        komi=rules.komi,
        moves=tuple((ply % 2, action) for ply, action in enumerate(game.actions)),
        result=format_result(game.rewards, _reason(game)),
        rules=rules_name(rules),
        players=names if game.first_is_black else (names[1], names[0]),
        date=time.strftime("%Y-%m-%d"),
    )
    return format_game(record, notes)


def rules_name(rules: GameConfig) -> str:
    """Return the RU property: area scoring and the rule of repetition."""
    suicide = "" if rules.suicide else ", no suicide"
    return "Tromp-Taylor" + suicide if rules.superko == "positional" else f"area scoring, {rules.superko} ko{suicide}"


def _reason(game: MatchGame) -> str:
    if game.failed:
        return "F"
    if game.ending != PLAYED_OUT:
        return "R"
    return "" if game.margin is None else f"{abs(game.margin):g}"
