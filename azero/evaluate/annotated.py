"""The record of a reviewed game for other programs, with values, better lines and marks: SGF, PGN
or CSA."""

import re
from collections.abc import Callable, Mapping, Sequence

from azero.console.tables import count_of
from azero.evaluate.review import Review, ReviewedMove
from azero.games.chess.pgn import PgnGame, format_pgn
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_write import format_game
from azero.games.notes import Note
from azero.games.shogi.csa import format_csa
from azero.games.shogi.record_files import special_move
from azero.players.thinking import chess_centipawns, shogi_centipawns, win_rate

GLYPHS = ((0.3, 4), (0.2, 2), (0.1, 6))
"""Smallest loss in value of a blunder, a mistake and a dubious move, with PGN's glyphs (the limits
of Lichess: lila, Advice.scala)."""
_EVALUATIONS = re.compile(r"^(?:\*\* -?\d+\s*)+|\[%eval\s[^\]]*\]\s*")
"""Evaluations in a comment of CSA or PGN."""


def annotated_record(review: Review) -> tuple[str, str]:
    """Return the suffix and the text of the record, with the comments of a review after the
    record's own, and the better line as a variation where a move gave something away (CSA has no
    variations). Evaluations after each move replace those of the record; they are for White in PGN
    (`[%eval 0.35]`, as Lichess) and for Black in CSA (`'** 120`, as floodgate)."""
    record = review.game.record
    if isinstance(record, GameRecord):
        comments = _comments(review, {}, "", "\n")
        return ".sgf", format_game(record, _notes(review, comments))
    if isinstance(record, PgnGame):
        scores = _after_moves(review, lambda value: f"[%eval {chess_centipawns(value) / 100:.2f}]")
        notes = _notes(review, _comments(review, scores, " ", "; "))
        return ".pgn", format_pgn(record.actions, record.tags, record.result, record.fen, notes)
    scores = _after_moves(review, lambda value: f"** {shogi_centipawns(value)}")
    played, ending = record.actions, special_move(record)
    if review.stopped:  # a record has legal moves alone
        played = played[: review.moves[-1].number]
        opponent = ("white", "black")[review.final_position.to_play]
        is_foul = len(record.actions) == len(played) + 1 and record.winner == opponent
        ending = "%ILLEGAL_MOVE" if is_foul else ""
    return ".csa", format_csa(
        played,
        record.sfen,
        record.black,
        record.white,
        ending,
        _comments(review, scores, "\n", "\n"),
        record.facts,
        record.ratings,
    )


def _after_moves(review: Review, score: Callable[[float], str]) -> dict[int, str]:
    """Return by the number of a move the score after it of its value for the first mover."""
    return {
        move.number: score(-move.value_after if move.colour else move.value_after)
        for move in review.moves
    }


def _notes(review: Review, comments: Sequence[str]) -> list[Note]:
    """Return the notes of all moves of the record: comments, its own marks, and for a move that
    gave something away its better line and its mark."""
    record = review.game.record
    marks = record.glyphs if isinstance(record, PgnGame) else [()] * len(comments)
    notes = [Note(comment, (), own) for comment, own in zip(comments, marks, strict=True)]
    for move in review.moves:
        if move.loss > 0:
            note = notes[move.number - 1]
            glyph = [glyph for loss, glyph in GLYPHS if move.loss >= loss][:1]
            glyphs = tuple(dict.fromkeys([*note.glyphs, *glyph]))
            notes[move.number - 1] = Note(note.comment, (move.line,), glyphs)
    return notes


def _comments(
    review: Review, scores: Mapping[int, str], after_score: str, separator: str
) -> list[str]:
    """Return the comment of each move of the record: the score, its own, and that of the review."""
    record = review.game.record
    comments = [*record.comments, *[""] * (len(record.moves) - len(record.comments))]
    for move in review.moves:
        words = (_EVALUATIONS.sub("", comments[move.number - 1]), *_remarks(review, move))
        text = separator.join(word for word in words if word)
        comments[move.number - 1] = scores.get(move.number, "") + after_score + text
    return comments


def _remarks(review: Review, move: ReviewedMove) -> list[str]:
    first = review.sides[0]
    # a share of won games, or in chess, where many are drawn, of points
    verb = "scores" if isinstance(review.game.record, PgnGame) else "wins"
    lines = [
        f"{first} {verb} {100 * win_rate(move.first_value):.1f}% before this move; "
        f"{count_of(move.visits, 'visit')}"
    ]
    if move.action == move.best:
        lines.append(f"{move.line_names[0]} is the best move")
    else:
        lines.append(f"best {move.line_names[0]}; this one loses {50 * move.loss:.1f}%")
    if move.black_lead is not None:
        leader = "Black" if move.black_lead >= 0 else "White"
        lines.append(f"{leader} leads by {abs(move.black_lead):.1f} points after this move")
    lines.append("line " + " ".join(move.line_names))
    if review.stopped and move is review.moves[-1]:
        lines.append(f"the review ends here: {review.stopped}")
    return lines
