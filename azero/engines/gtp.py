"""The Go Text Protocol, version 2 (Farnebäck's draft 2): lines in, answers out. The commands themselves are in the modules `gtp_*`."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import IO

from azero import __version__
from azero.engines import gtp_analysis, gtp_board, gtp_play, gtp_rules
from azero.engines.go_game import GoGame
from azero.engines.gtp_command import Call, Command, CommandError, Reply
from azero.engines.gtp_settings import Settings
from azero.engines.lines import Line, LineReader, LineWriter, say

LONGEST_LINE = 65_536
"""Bytes of a command line; a set_position of a full 25x25 board has 5,000."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters without meaning: removed; a tab (x09) counts as a blank (section 3.1)."""


class GtpEngine:
    """A GTP engine over a game. It answers one line at a time; whatever a line holds, there is an answer or silence as the protocol has it, never a failure."""

    def __init__(self, game: GoGame, settings: Settings, write: Callable[[str], None], name: str = "azero") -> None:
        """Serve `game`; answers go to `write`."""
        self.game = game
        self.settings = settings
        self.name = name
        self.has_quit = False
        self._write = write
        self._commands: dict[str, Command] = {**_administration(self), **gtp_board.COMMANDS, **gtp_play.COMMANDS, **gtp_rules.COMMANDS, **gtp_analysis.COMMANDS}

    def handle(self, line: Line) -> None:
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
            reply.finish(self._answer(words, reply))
        except CommandError as error:
            reply.fail(str(error))
        except ValueError as error:
            reply.fail(str(error))
        except Exception as error:  # whatever is wrong with one command, the game must go on; the trace goes to standard error
            say(traceback.format_exc())
            reply.fail(f"internal error: {type(error).__name__}: {error}")

    def _answer(self, words: list[str], reply: Reply) -> str:
        if not words:
            raise CommandError("syntax error: no command")
        command = self._commands.get(words[0])
        if command is None:
            raise CommandError("unknown command")
        return command(Call(words[1:], self.game, self.settings, reply))


def _parse(text: str) -> tuple[str, list[str]]:
    """Return the command number ("" without one) and the words of a line, after what the protocol has thrown away (section 3.1)."""
    words = text.partition("#")[0].split()
    if words and words[0].isascii() and words[0].isdigit():
        return words[0], words[1:]
    return "", words


def _administration(engine: GtpEngine) -> dict[str, Command]:
    """The commands about the engine itself (section 6.3.1)."""

    def known_command(call: Call) -> str:
        return "true" if call.words and call.words[0] in engine._commands else "false"

    def quit_engine(call: Call) -> str:
        engine.has_quit = True
        return ""

    return {
        "protocol_version": lambda call: "2",
        "name": lambda call: engine.name,
        "version": lambda call: __version__,
        "list_commands": lambda call: "\n".join(engine._commands),
        "known_command": known_command,
        "quit": quit_engine,
    }


def serve(make_engine: Callable[[Callable[[str], None], Callable[[], bool]], GtpEngine], source: IO[bytes], sink: IO[bytes]) -> None:
    """Answer every line of `source` on `sink` until `quit` or the end of the input.

    `make_engine(write, is_interrupted)` makes the engine; input is read from the start, so that a controller never waits in vain while the network loads.
    """
    reader = LineReader(source, LONGEST_LINE)
    write = LineWriter(sink)
    engine = make_engine(write, reader.is_waiting)
    say("GTP ready")
    while not engine.has_quit and not write.is_closed:
        if engine.settings.ponders and engine.settings.may_ponder:
            engine.game.session.ponder()
        line = reader.take()
        if line is None:
            break
        engine.handle(line)
