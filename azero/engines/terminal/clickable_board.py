"""A game against the network in a notebook: a board whose points are buttons, and the terminal's
commands."""

import io
import re
from html import escape
from types import ModuleType
from typing import Any

from azero.console.terminal import make_console
from azero.engines.session import Session
from azero.engines.terminal.terminal import Terminal
from azero.games.position import Position
from azero.players.thinking import Limits

CLICKABLE = ("go", "tictactoe")
"""Games whose moves are points; the points are the first actions, row by row from the top left."""
COMMANDS = {
    "go": ("pass", "undo", "hint", "score", "resign"),
    "tictactoe": ("undo", "hint", "resign"),
}
"""Commands that get a button; the others can be typed."""
STONES = {"X": "\N{MEDIUM BLACK CIRCLE}", "O": "\N{MEDIUM WHITE CIRCLE}", ".": ""}
"""Characters shown for stones; these two keep their colours on any page."""
WOOD, LAST = "#e3bc7a", "#d98b3a"
"""Colours of a point, and of the point of the last move."""
POINT_PIXELS = 38
MESSAGE_LINES = 6
"""Lines of messages kept below the board."""


class ClickableBoard:
    """One game between a human and a thinker. `widget` is what a notebook shows."""

    def __init__(
        self, widgets: ModuleType, session: Session, limits: Limits, *, human: int = 0
    ) -> None:
        """Set the board up with the module ipywidgets, an optional extra; if the thinker moves
        first (`human` is 1), it does, within `limits`.

        Raises:
          ValueError: the game's moves are more than a point.
        """
        game = session.game
        if game.name not in CLICKABLE:
            raise ValueError(
                f"{game.name} cannot be played by clicking, because its moves are more than a "
                "point; azero play plays it in a terminal"
            )
        self._session = session
        self._output = io.StringIO()
        self._terminal = Terminal(
            session,
            limits,
            # Jupyter sets FORCE_COLOR, which would put a terminal's control codes on the page.
            make_console(file=self._output, width=100, force_jupyter=False, force_terminal=False),
            human=human,
            show=self._show,
        )
        self._messages: list[str] = []
        rows, columns = game.board_shape
        self.points = [self._point(widgets, index) for index in range(rows * columns)]
        self._commands = [self._command(widgets, word) for word in COMMANDS[game.name]]
        self._text = widgets.Text(
            placeholder="a move or a command, such as D4, undo, help",
            continuous_update=False,
            layout=widgets.Layout(width="22em"),
        )
        self._text.observe(self._typed, names="value")
        self._status = widgets.HTML()
        grid = widgets.GridBox(
            self.points,
            layout=widgets.Layout(
                grid_template_columns=f"repeat({columns}, {POINT_PIXELS}px)", grid_gap="1px"
            ),
        )
        self.widget = widgets.VBox(
            [grid, widgets.HBox([*self._commands, self._text]), self._status]
        )
        self._show(session.position)
        self.handle_line("")

    @property
    def messages(self) -> str:
        """The most recent messages, one a line."""
        return "\n".join(self._messages[-MESSAGE_LINES:])

    def handle_line(self, line: str) -> None:
        """Carry out what was clicked or typed, a move or a command of the terminal, and let the
        network answer."""
        self._tell("thinking ...")
        if line:
            self._terminal.handle_line(line)
        self._terminal.answer()
        self._messages += [text for text in self._output.getvalue().splitlines() if text.strip()]
        self._output.seek(0)
        self._output.truncate()
        self._tell(self.messages)

    def _point(self, widgets: ModuleType, index: int) -> Any:
        side = f"{POINT_PIXELS}px"
        button = widgets.Button(
            layout=widgets.Layout(padding="0", margin="0", width=side, height=side),
            tooltip=self._session.game.format_action(self._session.position.state, index),
        )
        button.on_click(lambda _: self.handle_line(self._session.position.action_name(index)))
        return button

    def _command(self, widgets: ModuleType, word: str) -> Any:
        button = widgets.Button(description=word, layout=widgets.Layout(width="5em"))
        button.on_click(lambda _: self.handle_line(word))
        return button

    def _typed(self, change: Any) -> None:
        line = change["new"].strip()
        if line:
            self._text.value = ""
            self.handle_line(line)

    def _show(self, position: Position) -> None:
        """Put the stones on the buttons."""
        last = position.actions[-1] if position.actions else None
        for index, (button, sign) in enumerate(zip(self.points, signs(position), strict=True)):
            button.description = STONES[sign]
            button.style.button_color = LAST if index == last else WOOD

    def _tell(self, text: str) -> None:
        self._status.value = f"<pre>{escape(text)}</pre>"


def signs(position: Position) -> list[str]:
    """Return a sign for each point, row by row from the top left: X for the first mover, O for the
    second, a dot for none."""
    rows, columns = position.game.board_shape
    lines = [
        re.findall(r"[XO.]", line)
        for line in position.game.format_board(position.state).splitlines()
    ]
    found = [sign for line in lines if len(line) == columns for sign in line]
    return found[: rows * columns]  # a line of coordinates has fewer
