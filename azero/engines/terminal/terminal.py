"""A game against the network in a terminal, for every game, and how its board is drawn."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from azero.console.interrupts import first_interrupt
from azero.console.tables import count_of
from azero.data.files import describe_error
from azero.engines.go_game import points_of
from azero.engines.moves import best_action
from azero.engines.session import Session
from azero.games.go import setup
from azero.games.go.rules import Go
from azero.games.go.scoring.status import judge
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_write import format_game, format_result, rules_name
from azero.games.go.text import column_name, format_points
from azero.games.position import Position
from azero.games.table import side_names
from azero.players.thinking import Analysis, Limits, ThinkOptions, win_rate

HELP = """  undo         take back your last move and the answer to it
  hint         show what the network thinks of your position
  board        draw the board again
  resign       resign the game
  quit         leave the game; Ctrl-C stops the network's thinking, else leaves"""
GO_HELP = """  D4, b2 ...   play there (columns are letters, rows count from below)
  pass         pass
  score        the score as it stands, dead stones removed
  save FILE    write the game as SGF
"""
_WOOD = "on #d9a95f"
_STYLES = {1: f"bold #000000 {_WOOD}", -1: f"bold #ffffff {_WOOD}", 0: f"#7a5a28 {_WOOD}"}
_SIGNS = {1: "X", -1: "O", 0: "."}
RESIGN_THRESHOLD = -0.95
"""The network resigns at a value of this or less."""


class Terminal:
    """One game between a human and a thinker."""

    def __init__(
        self,
        session: Session,
        limits: Limits,
        console: Console,
        *,
        human: int = 0,
        show: Callable[[Position], None] | None = None,
    ) -> None:
        """Prepare a game. `limits` are those of the network's moves and of hints; `human` is 0 if
        the person moves first, else 1; `show` shows a position, by default printing the board."""
        self._session = session
        self._limits = limits
        self._console = console
        self._human = human
        self._show = show or self._print_board
        self._winner: int | None = None
        self._has_resigned = False

    @property
    def _position(self) -> Position:
        return self._session.position

    def run(self, read: Callable[[str], str]) -> None:
        """Play until the person leaves; `read(prompt)` gives a line or raises EOFError."""
        go = isinstance(self._session.game, Go)
        sign = f" ({'XO'[self._human]})" if go else ""
        self._say(
            f"You play {self._side(self._human)}{sign} against "
            f"{self._session.load_thinker().name}. Type help for what you can do."
        )
        self._draw()
        while True:
            self.answer()
            try:
                line = read("your move: " if not self._is_over else "(game over) ").strip()
            except (EOFError, KeyboardInterrupt):
                line = "quit"
            if line.lower() in ("quit", "exit", "q"):
                self._say("Goodbye.")
                return
            if line:
                self.handle_line(line)

    @property
    def _is_over(self) -> bool:
        return self._position.is_over or self._has_resigned

    def handle_line(self, line: str) -> None:
        """Carry out a line that the person typed: a move or a command."""
        word, _, rest = line.partition(" ")
        commands: dict[str, Callable[[], None]] = {
            "help": self._help,
            "board": self._draw,
            "undo": self._undo,
            "hint": self._hint,
            "score": self._score,
            "save": lambda: self._save(rest.strip()),
            "resign": lambda: self._resign(self._human),
        }
        try:
            commands.get(word.lower(), lambda: self._play(line))()
        except (ValueError, OSError) as error:
            self._say(describe_error(error), "red")

    def _help(self) -> None:
        """Print what can be typed; for games other than Go with two moves as examples."""
        legal = np.flatnonzero(self._position.legal)[:2].tolist()
        names = ", ".join(map(self._position.action_name, legal))
        is_go = isinstance(self._session.game, Go)
        self._say((GO_HELP if is_go else f"  {names} ...   a move\n") + HELP)

    def _play(self, text: str) -> None:
        if self._is_over:
            save = ", save FILE" if isinstance(self._session.game, Go) else ""
            raise ValueError(f"the game is over: undo{save} or quit")
        try:
            action = self._position.parse_action(text)
        except ValueError as error:
            raise ValueError(f"{error}; type help for the commands") from error
        self._session.play(action)
        self._draw()

    def answer(self) -> None:
        """Let the network move if it is its turn."""
        if self._is_over or self._position.to_play == self._human:
            return
        with self._console.status("thinking ..."):
            analysis = self._think()
        # With a handicap, where White moves first, the network begins far behind and plays on.
        may_resign = self._session.positions[0].to_play == 0 and analysis.visits > 1
        if may_resign and analysis.value <= RESIGN_THRESHOLD:
            self._resign(1 - self._human)
            return
        action = best_action(self._position, analysis)
        name = self._position.action_name(action)
        self._session.play(action)
        self._draw()
        chances = (
            f"{win_rate(analysis.value):.0%} for me after {count_of(analysis.visits, 'visit')}"
        )
        self._say(f"I play {name} ({chances})", "bold")
        if self._position.is_over:
            self._score()

    def _think(self) -> Analysis:
        """Think about the position; Ctrl-C ends that."""
        with first_interrupt() as pressed:
            options = ThinkOptions(should_stop=pressed.is_set)
            return self._session.think(self._position, self._limits, options)

    def _undo(self) -> None:
        """Take back a resignation, else a move, and moves until it is the person's turn again."""
        movers = [position.to_play for position in self._session.positions[:-1]]
        if self._has_resigned:
            self._has_resigned, self._winner = False, None
        elif movers and self._human not in movers:
            raise ValueError("you have no move to take back")
        else:
            self._session.undo()
        while self._session.num_moves and self._position.to_play != self._human:
            self._session.undo()
        self._draw()

    def _hint(self) -> None:
        if self._is_over:
            raise ValueError("the game is over")
        analysis = self._think()
        self._say(
            f"your chances: {win_rate(analysis.value):.1%} ({count_of(analysis.visits, 'visit')})"
        )
        for info in analysis.moves[:5]:
            visits = count_of(info.visits, "visit")
            self._say(f"  {self._line(info.line):<24} {win_rate(info.value):6.1%}  {visits}")

    def _line(self, actions: tuple[int, ...]) -> str:
        """Return the first moves of a line as text."""
        position, names = self._position, []
        for action in actions[:4]:
            if position.is_over or not position.legal[action]:
                break
            names.append(position.action_name(action))
            position = position.play(action)
        return " ".join(names)

    def _score(self) -> None:
        if self._has_resigned and self._winner is not None:
            self._say(f"{self._side(self._winner)} wins by resignation")
            return
        game = self._session.game
        if isinstance(game, Go):
            status = judge(game.board(self._position.state))
            margin = status.margin - game.komi
            dead = f", {int(status.dead.sum())} dead stones removed" if status.dead.any() else ""
            result = "a draw"
            if margin:
                result = f"{self._side(int(margin < 0))} by {format_points(abs(margin))}"
            self._say(f"by area, komi {game.komi:g}: {result}{dead}")
        if self._position.is_over:
            first, second = self._position.rewards
            result = "a draw" if first == second else f"{self._side(int(second > first))} wins"
            notes = [self._position.ending]
            notes += ["every stone on the board counts as alive"] * isinstance(game, Go)
            said = ", ".join(filter(None, notes))
            self._say(f"the game is over: {result}{f' ({said})' if said else ''}")
        elif not isinstance(game, Go):
            self._say("the game is not over")

    def _resign(self, loser: int) -> None:
        if self._is_over:
            raise ValueError("the game is over")
        self._has_resigned, self._winner = True, 1 - loser
        who = "You resign" if loser == self._human else "I resign"
        self._say(f"{who}: {self._side(1 - loser)} wins")

    def _save(self, name: str) -> None:
        game, position = self._session.game, self._position
        if not isinstance(game, Go):
            raise ValueError("only games of Go can be saved (as SGF)")
        if not name:
            raise ValueError("save FILE: the file name is missing")
        names = ("you", self._session.load_thinker().name)
        rewards = position.rewards
        if self._winner is not None:
            rewards = (1.0, -1.0) if self._winner == 0 else (-1.0, 1.0)
        result = format_result(rewards, "R" if self._has_resigned else "") if self._is_over else "?"
        start = self._session.positions[0]
        black, white = points_of(game.board(start.state))
        path = Path(os.path.expanduser(name))  # as shells do, "~nobody" stays
        record = GameRecord(
            name=path.name,
            board_shape=game.board_shape,
            komi=game.komi,
            moves=tuple(
                (ply % 2, action) for ply, action in enumerate(position.actions, start.to_play)
            ),
            black_points=tuple(black),
            white_points=tuple(white),
            to_play=start.to_play,
            result=result,
            rules=rules_name(game.superko, game.suicide),
            players=names if self._human == 0 else (names[1], names[0]),
        )
        path.write_text(format_game(record), encoding="utf-8")
        self._say(f"saved: {path}")

    def _side(self, colour: int) -> str:
        return side_names(self._session.game.name)[colour]

    def _draw(self) -> None:
        self._show(self._position)
        if self._position.is_over and self._position.to_play != self._human:
            self._score()

    def _print_board(self, position: Position) -> None:
        board = draw_board(position)
        self._console.print(board, soft_wrap=True)
        width = max(map(cell_len, board.plain.splitlines()))
        if width > self._console.width:
            self._say(
                f"the board needs {width} columns; the terminal has {self._console.width}", "yellow"
            )

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style))


def draw_board(position: Position) -> Text:
    """Return the position as text: a Go board in colours with coordinates, star points and the last
    move in brackets; other games as their rules draw them."""
    game = position.game
    if not isinstance(game, Go):
        diagram = game.format_board(position.state)
        # The rules of most games draw coordinates, hands and more around the board, or another
        # diagram.
        rows, columns = game.board_shape
        is_bare = [len(line.split()) for line in diagram.splitlines()] == [columns] * rows
        return _with_coordinates(diagram) if is_bare else Text(diagram)
    board = game.board(position.state)
    last = position.actions[-1] if position.actions and position.actions[-1] < board.size else None
    names = "   " + " ".join(map(column_name, range(board.shape[1])))
    stars = set(setup.star_points(game.board_shape))
    text = Text(names + "\n")
    for row in range(board.shape[0]):
        text.append(f"{board.shape[0] - row:>2}")
        for column in range(board.shape[1]):
            point = row * board.shape[1] + column
            is_last, follows_last = point == last, column > 0 and point - 1 == last
            text.append("(" if is_last else ")" if follows_last else " ", _STYLES[0])
            value = int(board[row, column])
            text.append("+" if value == 0 and point in stars else _SIGNS[value], _STYLES[value])
        text.append(")" if last == row * board.shape[1] + board.shape[1] - 1 else " ", _STYLES[0])
        text.append(f"{board.shape[0] - row}\n")
    text.append(names)
    return text


def _with_coordinates(diagram: str) -> Text:
    """Return the bare diagram of a board, one sign a square and blanks between them, with letters
    below and numbers at the side, a1 at the bottom left."""
    rows = diagram.splitlines()
    lines = [f"{len(rows) - index:>2} {row}" for index, row in enumerate(rows)]
    letters = " ".join(chr(ord("a") + column) for column in range(len(rows[0].split())))
    return Text("\n".join([*lines, f"   {letters}"]))
