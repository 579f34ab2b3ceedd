"""Game records of Go as SGF text (FF[4], red-bean.com/sgf). Host side only."""

from collections.abc import Sequence

from azero.games.go import setup
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_text import LETTERS, escape
from azero.games.notes import Note


def rules_name(superko: str, suicide: bool) -> str:
    """Return the RU property of area rules for other programs: the nearest of the names that SGF,
    KataGo and KaTrain know.

    Chinese rules have simple ko in KataGo and positional superko on KGS and OGS, so both get that
    name.
    """
    if not suicide:
        return "AGA" if superko == "situational" else "Chinese"
    return "Tromp-Taylor" if superko == "positional" else "NZ"


def format_game(record: GameRecord, notes: Sequence[Note] = ()) -> str:
    """Return a game as SGF text. `notes` belong to the moves, and there may be fewer; without any
    the record's own comments are written.

    Raises:
      ValueError: the board is too large for the format.
    """
    rows, columns = record.board_shape
    if max(rows, columns) > len(LETTERS):
        raise ValueError(
            f"SGF has no coordinates for a {rows}x{columns} board; the largest is "
            f"{len(LETTERS)}x{len(LETTERS)}"
        )
    notes = notes or [Note(comment) for comment in record.comments]
    lines, open_branches = [_format_root(record)], []
    for ply, (colour, action) in enumerate(record.moves):
        note = notes[ply] if ply < len(notes) else Note()
        comment = f"C[{escape(note.comment)}]" if note.comment else ""
        node = _format_move(colour, action, columns, rows) + comment
        if note.variations:
            others = [
                "".join(
                    _format_move((colour + step) % 2, other, columns, rows)
                    for step, other in enumerate(line)
                )
                for line in note.variations
            ]
            open_branches.append("".join(f"\n({line})" for line in others))
            node = "(" + node
        lines.append(node + ("\n" if ply % 10 == 9 or comment else ""))
    return (
        "".join(lines).rstrip("\n")
        + "".join(")" + branch for branch in reversed(open_branches))
        + ")\n"
    )


def format_result(rewards: tuple[float, float], reason: str = "") -> str:
    """Return the result property: B+, W+ or 0 for a draw; `reason` is "R" for a resignation, "F"
    for a forfeit, or a margin."""
    if rewards[0] == rewards[1]:
        return "0"
    return ("B+" if rewards[0] > rewards[1] else "W+") + reason


def _format_root(record: GameRecord) -> str:
    rows, columns = record.board_shape
    size = str(rows) if rows == columns else f"{columns}:{rows}"
    komi = "" if record.komi is None else f"{record.komi:g}"
    black, white = (
        name
        + "".join(f"[{LETTERS[point % columns]}{LETTERS[point // columns]}]" for point in points)
        if points
        else ""
        for name, points in (("AB", record.black_points), ("AW", record.white_points))
    )
    set_up = setup.count_handicap(record.black_points, record.white_points, (), rows * columns)
    handicap = str(record.stated_handicap or set_up or "")
    turn = "BW"[record.to_play] if black or white or record.to_play else ""
    fields = {
        "KM": komi,
        "RU": record.rules,
        "PB": record.players[0],
        "PW": record.players[1],
        "BR": record.ranks[0],
        "WR": record.ranks[1],
        "DT": record.date,
        "RE": record.result,
        "HA": handicap,
        "PL": turn,
        **dict(record.others),
    }
    return (
        f"(;GM[1]FF[4]CA[UTF-8]AP[azero]SZ[{size}]"
        + "".join(f"{name}[{escape(text)}]" for name, text in fields.items() if text)
        + f"{black}{white}\n"
    )


def _format_move(colour: int, action: int, columns: int, rows: int) -> str:
    row, column = divmod(action, columns)
    return f";{'BW'[colour]}[{LETTERS[column] + LETTERS[row] if action < rows * columns else ''}]"
