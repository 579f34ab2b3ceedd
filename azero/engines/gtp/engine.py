"""The Go Text Protocol, version 2 (Farnebäck's draft 2): lines in, answers out. The commands are in
`analysis`, `board` and `play`."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from azero import __version__
from azero.console.standard_output import say
from azero.engines.background import Background, ProtocolEngine, StartError
from azero.engines.gtp import analysis as gtp_analysis
from azero.engines.gtp import board as gtp_board
from azero.engines.gtp import play as gtp_play
from azero.engines.gtp.command import Call, Command, CommandError, Reply
from azero.engines.limits import Settings
from azero.engines.lines import InputLine, LineReader, LineWriter

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame

LONGEST_LINE = 65_536
"""Bytes of a command line; a set_position of a full 25x25 board has 5,000."""
UNLISTED = ("analyze", "genmove_analyze")
"""Supported, but not listed by `list_commands`, as in KataGo: Sabaki would prefer `analyze` to
`kata-analyze`, and read win rates in Leela Zero's units."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters, which are removed; a tab (x09) counts as a space (section 3.1)."""


class GtpEngine(ProtocolEngine["GoGame"]):
    """A GTP engine over a game. It answers one line at a time; any line gets the answer that the
    protocol prescribes, never a crash."""

    def __init__(
        self, game: GoGame | Background[GoGame], settings: Settings, write: Callable[[str], None]
    ) -> None:
        """Serve `game`, which may still be loading: questions about the engine itself are answered
        meanwhile. Answers go to `write`."""
        super().__init__(game)
        self.settings = settings
        self._write = write
        self._own_commands = _administration(self)
        self._commands: dict[str, Command] = {
            **gtp_board.COMMANDS,
            **gtp_play.COMMANDS,
            **gtp_analysis.COMMANDS,
        }

    def handle(self, line: InputLine) -> None:
        """Answer one line of input; an empty line or a comment has no answer."""
        text = _CONTROL.sub("", line.text.decode("utf-8", errors="replace")).replace("\t", " ")
        number, words = _parse(text)
        if not number and not words and not line.is_too_long:
            return
        reply = Reply(self._write, number)
        if line.is_too_long:
            reply.fail(f"line too long: more than {LONGEST_LINE} bytes")
            return
        try:
            reply.finish(self._answer(words, reply) or "")
        except (CommandError, ValueError) as error:
            reply.fail(str(error))
        except StartError as error:
            self.failure = error.__cause__
            reply.fail(f"cannot play: {error}")
        # an error in one command must not end the game; the traceback goes to standard error
        except Exception as error:
            say(traceback.format_exc())
            reply.fail(f"internal error: {type(error).__name__}: {error}")

    def _answer(self, words: list[str], reply: Reply) -> str | None:
        if not words:
            raise CommandError("syntax error: no command")
        if words[0] in self._own_commands:
            return self._own_commands[words[0]](words[1:])
        if words[0] not in self._commands:
            raise CommandError("unknown command")
        return self._commands[words[0]](Call(words[1:], self.game, self.settings, reply))

    def known_commands(self) -> list[str]:
        """Return the commands that `list_commands` names."""
        return [*self._own_commands, *(name for name in self._commands if name not in UNLISTED)]


def _parse(text: str) -> tuple[str, list[str]]:
    """Return the command number ("" without one) and the words of a line, without what the protocol
    discards (section 3.1)."""
    words = text.partition("#")[0].split()
    if words and words[0].isascii() and words[0].isdigit():
        return words[0], words[1:]
    return "", words


def _administration(engine: GtpEngine) -> dict[str, Callable[[list[str]], str | None]]:
    """The commands about the engine itself (section 6.3.1), which need no game: from their words to
    their answers."""

    def known_command(words: list[str]) -> str:
        return "true" if words and words[0] in engine.known_commands() else "false"

    def quit_engine(words: list[str]) -> None:
        engine.has_quit = True

    return {
        "protocol_version": lambda words: "2",
        "name": lambda words: "azero",
        "version": lambda words: __version__,
        "list_commands": lambda words: "\n".join(engine.known_commands()),
        "known_command": known_command,
        "quit": quit_engine,
    }


def serve(
    make_engine: Callable[[Callable[[str], None], Callable[[], bool]], GtpEngine],
    source: IO[bytes],
    sink: IO[bytes],
) -> None:
    """Answer every line of `source` on `sink` until `quit` or the end of the input.

    `make_engine(write, is_interrupted)` makes the engine at once, whose game may still be loading:
    a controller always gets an answer.

    Raises:
      Exception: what kept the engine from being started or its network from being loaded.
    """
    reader = LineReader(source, LONGEST_LINE)
    write = LineWriter(sink)
    engine = make_engine(write, lambda: reader.is_waiting() or write.is_closed)

    def ponder() -> None:
        if engine.settings.ponders and engine.settings.may_ponder:
            engine.game.session.ponder()

    engine.answer_lines(engine.handle, reader, write, ponder)
