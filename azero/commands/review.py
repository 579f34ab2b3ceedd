"""`azero analyze`: review a game record with one of our networks."""

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from azero.console.progress import working
from azero.console.tables import count_of
from azero.console.terminal import make_console
from azero.data.records.filters import GAMES
from azero.data.records.formats import all_suffixes, format_of
from azero.data.rows import replace_text
from azero.engines.serve import chosen_player, human_rules
from azero.engines.source import Source
from azero.evaluate.annotated import annotated_record
from azero.evaluate.recorded import RecordedGame, recorded_game
from azero.evaluate.review import Review, review_game, review_rows
from azero.games.archives import ARCHIVES, RecordError, find_game
from azero.games.go.encoding import NUM_KOMI_PLANES
from azero.games.go.rule_names import Rules
from azero.games.go.rules import Go
from azero.games.go.scoring.status import judge
from azero.games.go.settings import GoConfig
from azero.games.go.sgf import GameRecord
from azero.games.position import objection, rules_of_record
from azero.games.settings import GameConfig
from azero.players.specs import load_thinker, resolve
from azero.players.thinking import Limits
from azero.players.tree_player import TreePlayer
from azero.report.review_page import write_review
from azero.report.search_panels import draw_panels, search_position

VISITS = 200
"""Default visits per position."""


def analyze(
    path: Path,
    source: Source,
    visits: int | None = None,
    game: int = 1,
    as_json: bool = False,
    out: Path | None = None,
) -> Review:
    """Review a game of Go, chess or shogi, the number `game` (from 1) of a collection; write it as
    a record and as a page, or with `as_json` print a JSON line for every move, and write files only
    where `out` is given. The visits are those of the player's name by default, else VISITS, the
    directory `out` that of the record.

    Raises:
      ValueError: the game or the network cannot be read, or they are of different boards.
      CheckpointError: there is no such checkpoint, or it is damaged.
    """
    console = make_console(file=sys.stderr) if as_json else make_console()
    stem = None if as_json and out is None else _writable_stem(path, out, game)
    recorded, thinker, limits, notes = _prepare(path, source, visits, game, console)
    with working(f"review of {count_of(len(recorded.record.moves), 'move')}", console):
        review = review_game(
            thinker, recorded, limits, count_points=lambda stones: judge(stones).margin
        )
    if as_json:
        for row in review_rows(review):
            print(json.dumps(row))
    _say(console, [f"the review ends early: {review.stopped}"] if review.stopped else [])
    if stem is not None:
        _write(review, stem, thinker.name, " ".join(notes), console)
    return review


def _prepare(
    path: Path, source: Source, visits: int | None, game: int, console: Console
) -> tuple[RecordedGame, TreePlayer, Limits, list[str]]:
    """Return a game, the player that reviews it, its limits, and notes about the rules and the
    komi, which are also printed."""
    names = _games_of(path)
    spec = chosen_player(source, names[0])
    if visits is not None and visits < 1:
        raise ValueError(f"a review needs at least one visit, not {visits}")
    spec, config = resolve(spec)
    name = config.game.name if config.game.name in names else names[0]
    skipped: list[RecordError] = []
    games = iter(format_of(name).read(path, skipped))
    record = find_game(games, skipped, str(path), game)
    if isinstance(record, GameRecord):
        rules, notes = _rules(record, config.game, config.network.FITS_ANY_BOARD)
    elif config.game.name != name:
        raise ValueError(f"the network plays {config.game.name}, the record is a game of {name}")
    else:
        rules, notes = human_rules(config.game), []
    _say(console, notes)
    with contextlib.suppress(ValueError):  # a later game is damaged
        if game == 1 and next(games, None) is not None:
            _say(console, [f"{path} has further games; --game 2 takes the second."])
    recorded = recorded_game(record, rules.build())
    limits = Limits(visits=visits if visits is not None else spec.visits or VISITS)
    thinker = load_thinker(dataclasses.replace(spec, visits=limits.visits), rules)
    return recorded, thinker, limits, notes


def show_search(
    path: Path,
    source: Source,
    move: int,
    visits: int | None = None,
    game: int = 1,
    out: Path | None = None,
) -> Path:
    """Search the position before a move of a game of Go, and write the panels of AG16 Figure 5 as
    one SVG; return its path. Arguments and errors are those of `analyze`.

    Raises:
      ValueError: there is no such move, or it is another game.
    """
    console, stem = make_console(), _writable_stem(path, out, game)
    recorded, thinker, limits, _ = _prepare(path, source, visits, game, console)
    position, moves, first = recorded.start, recorded.moves, recorded.first_number
    if not isinstance(position.game, Go):
        raise ValueError(
            f"--panels draws games of Go, and {path} is a game of {position.game.name}"
        )
    if not first <= move <= first + len(moves):
        raise ValueError(f"--panels is a move from {first} to {first + len(moves)}, not {move}")
    for number, (colour, action) in enumerate(moves[: move - first], start=first):
        if problem := objection(position, colour, action, number):
            raise ValueError(f"{recorded.record.name}: {problem}")
        position = position.play(action)
    with working(f"search of {limits.visits:,} visits", console):
        found = search_position(thinker, position, limits)
    colour_name = "White" if position.to_play else "Black"
    title = f"{colour_name} to play, move {move}; {thinker.name}"
    picture = stem.with_name(f"{stem.name}.move-{move}.svg")
    replace_text(picture, draw_panels(found, title))
    console.print(str(picture), soft_wrap=True)
    return picture


def _games_of(path: Path) -> list[str]:
    """Return the games of which the file has records, as its suffix says, or what is in an
    archive.

    Raises:
      ValueError: there are none.
    """
    names = [name for name in GAMES if path.name.lower().endswith(format_of(name).suffixes)]
    if not names:
        suffixes = ", ".join(all_suffixes())
        raise ValueError(f"{path} is not a game record; the suffixes are {suffixes}")
    found = []
    for name in names if len(names) > 1 else ():
        with contextlib.suppress(ValueError):
            found += [name] if any(True for _ in format_of(name).read(path, [])) else []
    return found or names


def _say(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        console.print(note, soft_wrap=True)


def _rules(
    record: GameRecord, trained: GameConfig, fits_any_board: bool
) -> tuple[GameConfig, list[str]]:
    """Return the rules of the review, and notes about them."""
    if not isinstance(trained, GoConfig):
        raise ValueError(f"the network plays {trained.name}, the record is a game of Go")
    rows, columns = record.board_shape
    known = (trained.size[0], trained.size[-1])
    if known != record.board_shape and not fits_any_board:
        raise ValueError(
            f"the network plays on {known[0]}x{known[1]}, {record.name} is a game on "
            f"{rows}x{columns}"
        )
    stated, note = rules_of_record(record, Rules(trained.superko, trained.suicide))
    notes, komi = [note] if note else [], record.komi
    if komi is None or (2 * komi) % 1:
        komi = trained.komi
        notes.append(f"The record has no valid komi; reviewed with {komi:g}.")
    elif komi != trained.komi and trained.planes != NUM_KOMI_PLANES:
        notes.append(
            f"The network was trained with komi {trained.komi:g} and does not know the game's komi "
            f"of {komi:g}: its values are for {trained.komi:g}."
        )
    longest = max(2 * rows * columns, len(record.moves) + 2)
    rules = dataclasses.replace(
        trained.for_matches(),
        size=record.board_shape,
        komi=komi,
        superko=stated.superko,
        suicide=stated.suicide,
        max_moves=longest,
    )
    return rules, notes


def _writable_stem(path: Path, out: Path | None, game: int) -> Path:
    """Return the path with which the names of the files begin, in a directory that can be written
    to; it is checked before hours of searches are lost."""
    directory = path.parent if out is None else out
    if out is not None and path.exists():
        out.mkdir(parents=True, exist_ok=True)
    if directory.is_dir() and not os.access(directory, os.W_OK):
        raise ValueError(f"{directory} cannot be written to; name another directory with --out")
    return directory / _stem(path, game)


def _stem(path: Path, number: int) -> str:
    """Return the record's name without its suffix and with the number of a later game; with its
    suffix where another record beside it would have the same."""
    name, suffixes = path.name, all_suffixes()
    found = sorted((known for known in suffixes if name.lower().endswith(known)), key=len)
    stem = name[: len(name) - len(found[-1])] if found else name
    later = f"-{number}" if number > 1 else ""
    plain = [known for known in suffixes if known.count(".") == 1 and known not in ARCHIVES]
    others = [path.with_name(f"{one}{known}") for one in {stem, stem + later} for known in plain]
    is_shared = any(other != path and other.exists() for other in others)
    return (name if is_shared else stem) + later


def _write(review: Review, stem: Path, reviewer: str, note: str, console: Console) -> None:
    suffix, text = annotated_record(review)
    record = stem.with_name(f"{stem.name}.review{suffix}")
    page = stem.with_name(stem.name + ".review.html")
    replace_text(record, text)
    write_review(page, review, reviewer, note)
    for move in review.mistakes(3):
        loss = f"loses {50 * move.loss:.2f}% (better {move.line_names[0]})"
        console.print(f"{move.heading} {loss}", soft_wrap=True)
    console.print(f"{record}\n{page}", soft_wrap=True)
