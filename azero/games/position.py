"""Positions of real games on the host: used by players and engines."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsIndex, cast

import jax
import jax.numpy as jnp
import numpy as np

from azero.console.tables import count_of
from azero.games.game import Game, NamesEndings, PlayedOnHost, ReadsMoves, SeenOnHost
from azero.games.go.rule_names import Rules, read_rules
from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord, parse_games, read_games
from azero.games.positions import ReadsPositions
from azero.games.quoting import shorten
from azero.games.table import make, side_names
from azero.types import Array, PyTree


@dataclass(frozen=True, eq=False)
class Position:
    """A position of a real game on the host, with the moves that led to it.

    Positions do not change: `play` returns the next one. `str()` draws the board.
    """

    game: Game
    state: PyTree = field(repr=False)
    actions: tuple[int, ...]
    """Moves so far."""
    to_play: int
    """0 if the first mover of the game is to move, else 1."""
    is_over: bool
    rewards: tuple[float, float]
    """Of the first and the second mover; zero until the end."""
    legal: np.ndarray = field(repr=False)
    """bool[A]; it cannot be written to."""

    @classmethod
    def start(cls, game: Game) -> Position:
        """Return the position before the first move of `game`.

        Raises:
          TypeError: it is not a game but, say, the name of one.
        """
        _check_game(game)
        begin, _, _ = _compiled(game)
        return cls._of(game, begin(), ())

    @classmethod
    def from_moves(cls, game: Game, moves: str | Iterable[str]) -> Position:
        """Return the position of `game` after `moves`, by their names: "E5 C3", "e2e4 e7e5".

        Raises:
          ValueError: a move is not legal; it is quoted.
        """
        return cls.start(game).play_moves(moves)

    @classmethod
    def from_fen(
        cls, fen: str, moves: str | Iterable[str] = (), game: Game | None = None
    ) -> Position:
        """Return a position in FEN, with `moves` played from there.

        Args:
          fen: the position; its two counts may be missing.
          moves: by their names in UCI: "e2e4 e7e5".
          game: chess or minichess; None is chess.

        Raises:
          ValueError: it is not a position of the game (what is wrong is named), or a move is not
            legal.
          TypeError: `fen` is not text, or `game` not a game.
        """
        _check_text(fen)
        return position_of(fen, make("chess") if game is None else game).play_moves(moves)

    @classmethod
    def from_sfen(
        cls, sfen: str, moves: str | Iterable[str] = (), game: Game | None = None
    ) -> Position:
        """Return a position in SFEN, with `moves` (USI) played from there; `game` is shogi or
        animal shogi, None is shogi.

        Raises:
          ValueError, TypeError: as in `from_fen`.
        """
        _check_text(sfen)
        return position_of(sfen, make("shogi") if game is None else game).play_moves(moves)

    @classmethod
    def from_sgf(cls, source: str | Path, moves: int | None = None) -> Position:
        """Return a position of a recorded game of Go: board, komi, rules, set-up stones and moves
        of the main line.

        Args:
          source: a file (.sgf, .sgf.gz, .zip, .tar.gz; the first game of several), or SGF text.
          moves: how many of its moves are played; None is all of them.

        Raises:
          ValueError: it cannot be read, or a move breaks the rules; the move is named.
        """
        record = _read_record(source)
        game = game_of_record(record)
        position, played, num_handicap = start_of_record(record, cast(Go, game))
        if moves is not None and not 0 <= moves <= len(record.moves):
            raise ValueError(
                f"{record.name} has {count_of(len(record.moves), 'move')}, not {moves}"
            )
        if moves is not None and moves < num_handicap:  # the other stones are not on the board yet
            placed = [action for _, action in record.moves[:moves]]
            black = (*record.black_points, *placed)
            record = dataclasses.replace(record, black_points=black, moves=(), to_play=0)
            return start_of_record(record, cast(Go, game))[0]
        last = len(played) if moves is None else moves - num_handicap
        for number, (colour, action) in enumerate(played[:last], num_handicap + 1):
            if problem := objection(position, colour, action, number):
                raise ValueError(f"{record.name}: {problem}")
            position = position.play(action)
        return position

    @classmethod
    def of_state(cls, game: Game, state: PyTree, actions: tuple[int, ...] = ()) -> Position:
        """Return the position of `state`, which is of a real game: set up, or with handicap stones;
        `actions` are the moves that led to it, if any."""
        _, _, describe = _compiled(game)
        return cls._of(game, describe(state), actions)

    def play(self, move: SupportsIndex | str) -> Position:
        """Return the position after a move, by its name or by its action.

        Raises:
          ValueError: the move is not legal here, or the game is over.
          TypeError: it is neither text nor an integer.
        """
        if isinstance(move, str):
            return self.play(self.parse_action(move))
        action = operator.index(move)  # an integer of NumPy or JAX, too
        if self.is_over or not 0 <= action < self.game.num_actions or not self.legal[action]:
            raise ValueError(
                f"action {action} is not legal after the moves {list(self.actions)} of "
                f"{self.game.name}"
            )
        _, advance, _ = _compiled(self.game)
        return self._of(self.game, advance(self.state, action), (*self.actions, action))

    def play_moves(self, moves: str | Iterable[str]) -> Position:
        """Return the position after several moves, by their names; a text is split into words.

        Raises:
          ValueError: a move is not legal; it is quoted.
        """
        position = self
        for move in moves.split() if isinstance(moves, str) else moves:
            position = position.play(move)
        return position

    def legal_moves(self) -> list[str]:
        """Return the names of the legal moves; none when the game is over."""
        if self.is_over:
            return []
        return [self.action_name(int(action)) for action in np.flatnonzero(self.legal)]

    @property
    def side(self) -> str:
        """The name of the side to move: Black, White, X ..."""
        return side_names(self.game.name)[self.to_play]

    @property
    def ending(self) -> str:
        """How the game ended: checkmate, stalemate, move limit. Empty while it goes on, and where
        the rules do not say."""
        is_named = self.is_over and isinstance(self.game, NamesEndings)
        return cast(NamesEndings, self.game).ending(self.state) if is_named else ""

    def __str__(self) -> str:
        board = self.game.format_board(self.state)
        if not self.is_over:
            return f"{board}\n{self.side} to move"
        first, second = side_names(self.game.name)
        winner = first if self.rewards[0] > self.rewards[1] else second
        drawn = self.rewards[0] == self.rewards[1]
        result = "a draw" if drawn else f"{winner} wins"
        return f"{board}\nthe game is over: {result}{f' ({self.ending})' if self.ending else ''}"

    def action_name(self, action: int) -> str:
        """Return the name of a move, in the usual notation of the game."""
        return self.game.format_action(self.state, action)

    def parse_action(self, text: str) -> int:
        """Return the legal action of the name `text`, as `action_name` returns it, ignoring case;
        in chess also in SAN.

        Raises:
          ValueError: no legal move has this name; the text is quoted.
          TypeError: it is not text.
        """
        if not isinstance(text, str):
            raise TypeError(f"{text!r:.80} is not a move in text; play takes actions, too")
        if self.is_over:
            raise ValueError(f"{shorten(text)!r} cannot be played: the game is over")
        wanted = text.strip().lower()
        for action in np.flatnonzero(self.legal):
            if self.action_name(int(action)).lower() == wanted:
                return int(action)
        if isinstance(self.game, ReadsMoves):
            return self.game.parse_action(self.state, text.strip())
        raise ValueError(
            f"{shorten(text)!r} is not a legal move here (move {len(self.actions) + 1} of the game)"
        )

    @classmethod
    def _of(
        cls,
        game: Game,
        outcome: tuple[PyTree, Array, Array, Array, Array],
        actions: tuple[int, ...],
    ) -> Position:
        state, *facts = outcome
        to_play, is_over, rewards, legal = jax.device_get(facts)
        legal.setflags(write=False)
        return cls(
            game,
            state,
            actions,
            int(to_play),
            bool(is_over),
            (float(rewards[0]), float(rewards[1])),
            legal,
        )


def position_of(text: str, game: Game) -> Position:
    """Return the position of `game` that `text` describes, in FEN or SFEN.

    Raises:
      ValueError: it is not a position of the game; what is wrong is named.
      TypeError: `game` is not a game.
    """
    _check_game(game)
    if not isinstance(game, ReadsPositions):
        raise ValueError(f"{game.name} has no positions in FEN or SFEN")
    states = game.from_positions([text.strip()])
    return Position.of_state(game, jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), states))


def _check_game(game: object) -> None:
    if isinstance(game, type) or not hasattr(game, "init"):
        raise TypeError(f"{game!r} is not a game, as azero.make and model.game are")


def _check_text(position: object) -> None:
    if not isinstance(position, str):
        raise TypeError(f"{position!r:.80} is not a position in text")


@functools.lru_cache(maxsize=8)
def _compiled(
    game: Game,
) -> tuple[Callable[[], Any], Callable[[PyTree, int], Any], Callable[[PyTree], Any]]:
    """Return three functions of a game, each of which returns a state and the facts of its
    Position: its start, a state after an action, and a given state. They are compiled, unless the
    host can do it."""
    if isinstance(game, PlayedOnHost):
        return _on_host(game)

    def describe(state: PyTree) -> tuple[PyTree, Array, Array, Array, Array]:
        return (
            state,
            game.to_play(state),
            game.is_terminal(state),
            game.rewards(state),
            game.legal_action_mask(state),
        )

    advance = jax.jit(
        lambda state, action: describe(game.step(state, jnp.asarray(action, jnp.int32)))
    )
    if isinstance(game, SeenOnHost):

        def look(state: PyTree) -> tuple[Any, ...]:
            return state, *game.host_facts(jax.device_get(state))

        return lambda: look(game.init()), advance, look
    return jax.jit(lambda: describe(game.init())), advance, jax.jit(describe)


def _on_host(
    game: PlayedOnHost,
) -> tuple[Callable[[], Any], Callable[[PyTree, int], Any], Callable[[PyTree], Any]]:
    """Return the functions of `_compiled` for a game that needs no compiled program."""

    def describe(state: PyTree) -> tuple[Any, ...]:
        return state, *game.host_facts(state)

    return (
        lambda: describe(game.host_init()),
        lambda state, action: describe(game.host_step(state, action)),
        lambda state: describe(jax.device_get(state)),
    )


def _read_record(source: str | Path) -> GameRecord:
    """Return the first game of a file, or of SGF text, which begins with a parenthesis."""
    is_text = isinstance(source, str) and source.lstrip().startswith("(")
    games = parse_games(str(source).encode(), "the SGF") if is_text else read_games(source)
    return next(games)


def rules_of_record(record: GameRecord, default: Rules) -> tuple[Rules, str]:
    """Return the rules of ours that are nearest to those that a record states, and a note on what
    differs, empty where nothing does. A record that states none or unknown ones gets `default`, the
    rules that the network learned. White's points for handicap stones are those of `default`."""
    stated, note = record.rules.strip(), ""
    if not stated:
        return default, note
    try:
        requested = read_rules(stated, default)
    except ValueError:
        note = f"The record's rules, {stated[:40]!r}, are unknown; those of the network are used."
        return default, note
    rules = dataclasses.replace(requested.rules, white_handicap_bonus=default.white_handicap_bonus)
    if requested.missing:
        note = f"The record's rules, {stated[:40]!r}, have {', '.join(requested.missing)}: "
        note += "the nearest area rules are used."
    return rules, note


def game_of_record(record: GameRecord) -> Game:
    """Return the game of a record: its board, its komi if it has a possible one (else 7.5), and the
    nearest rules that are scored by area."""
    rows, columns = record.board_shape
    komi = 7.5 if record.komi is None or (2 * record.komi) % 1 else record.komi
    rules, _ = rules_of_record(record, Rules())
    longest = max(2 * rows * columns, len(record.moves) + 2)
    return make(
        "go",
        size=(rows, columns),
        komi=komi,
        superko=rules.superko,
        suicide=rules.suicide,
        max_moves=longest,
    )


def start_of_record(record: GameRecord, game: Go) -> tuple[Position, list[tuple[int, int]], int]:
    """Return the first position of a record, its moves from there, and how many of Black's first
    moves were placed as handicap stones instead."""
    black = list(record.black_points)
    moves = list(record.moves)
    skipped = 0
    first_white = next((index for index, (colour, _) in enumerate(moves) if colour == 1), 0)
    if first_white > 1 and all(0 <= action < game.num_points for _, action in moves[:first_white]):
        black += [action for _, action in moves[:first_white]]
        skipped = first_white
    moves = moves[skipped:]
    to_play = moves[0][0] if moves else record.to_play
    rules = cast(Game, game)  # its class variables are the protocol's plain ones
    if not black and not record.white_points and to_play == 0:
        return Position.start(rules), moves, skipped
    return Position.of_state(rules, game.setup(black, record.white_points, to_play)), moves, skipped


def objection(position: Position, colour: int, action: int, number: int) -> str:
    """Return why the recorded move `number` of a game cannot be played; "" if it can."""
    if position.is_over:
        return f"the game is over before move {number}"
    if colour != position.to_play:
        return f"move {number} is played out of turn"
    if not position.legal[action]:
        rules = position.game
        if not isinstance(rules, Go):
            return f"move {number} is not legal"
        ko = "simple ko" if rules.superko == "simple" else f"{rules.superko} superko"
        suicide = "with" if rules.suicide else "without"
        move = f"move {number}, {position.action_name(action)},"
        if rules.board(position.state).reshape(-1)[action]:
            return f"{move} is on an occupied point"
        return f"{move} is forbidden under {ko} {suicide} suicide"
    return ""
