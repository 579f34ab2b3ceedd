"""Programs that speak GTP as players of Go."""

import contextlib
import time
from collections.abc import Callable, Sequence

from azero.games.position import Position
from azero.games.quoting import shorten
from azero.players.clock import Clock
from azero.players.player import ILLEGAL, RESIGN, Decision, Move, PlayerError
from azero.players.program import ANSWER_CHARACTERS, QUIT_SECONDS, ExternalProgram, ProgramPlayer


class GtpProgram:
    """A program that speaks the Go Text Protocol, version 2.

    Every command carries a number, and only the answer with this number counts: anything else the
    program prints is ignored.
    """

    def __init__(self, command: Sequence[str], timeout: float = 60.0) -> None:
        """Start `command` (a list of words); `timeout` is the number of seconds it may take over an
        answer.

        Raises:
          ValueError: the program does not exist or cannot be started.
        """
        self._program = ExternalProgram(command)
        self._timeout = timeout
        self._number = 0

    def ask(self, command: str, timeout: float | None = None) -> str:
        """Send one command and return the text of its answer, without the leading `=` and number.

        Raises:
          PlayerError: the program refused the command, did not answer in time, or ended; the
            message names which. It is killed unless it only refused.
        """
        self._number += 1
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        self._program.send(f"{self._number} {command}", command)
        lines = [self._await_answer(command, deadline)]
        length = 0
        while line := self._program.next_line(command, deadline):
            lines.append(line)
            length += len(line) + 1
            if length > ANSWER_CHARACTERS:
                self._program.fail(
                    f"does not end its answer to {command!r}: {length:,} characters so far"
                )
        text = "\n".join(lines)[1 + len(str(self._number)) :].strip()
        if lines[0].startswith("?"):
            raise PlayerError(f"refused {command!r}: {shorten(text)}")
        return text

    def close(self) -> None:
        """End the program: ask it to quit, and kill it if it does not."""
        self._program.close(lambda: self.ask("quit", QUIT_SECONDS))

    def _await_answer(self, command: str, deadline: float) -> str:
        """Return the first line of the answer to the last command, skipping everything before
        it."""
        starts = (f"={self._number}", f"?{self._number}")
        while True:
            line = self._program.next_line(command, deadline)
            if line.startswith(starts) and not line[len(starts[0]) :][:1].isdigit():
                return line


class GtpPlayer(ProgramPlayer[GtpProgram]):
    """A GTP program as a Player: a new process for every game."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        size: int,
        komi: float,
        timeout: float = 60.0,
        clock: Clock | None = None,
    ) -> None:
        """Make a player called `name`; nothing is started before `reset`. The program may take
        `timeout` seconds over an answer, and is sent its clock at the start of a game, if it has
        one."""
        super().__init__(name, command, lambda words: GtpProgram(words, timeout), timeout)
        self._clock = clock
        self._settings = (f"boardsize {size}", f"komi {komi:g}", "clear_board")

    def reset(self) -> None:
        """Restart the program and set up the board.

        Raises:
          ValueError: the program cannot be started, or cannot be told its clock.
          PlayerError: it refused the size or the komi, or failed.
        """
        program = self.restart()
        for setting in self._settings:
            program.ask(setting)
        if self._clock is not None:
            try:
                program.ask(_time_settings(self._clock, self._knows))
            except ValueError as error:
                raise ValueError(f"{self.name}: {error}") from error

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Ask for a move.

        Raises:
          PlayerError: the program failed, or its move is not legal under our rules.
        """
        program, colour = self.program, _colour(position.to_play)
        if self._clock is not None and clock.main_seconds is not None:
            program.ask(f"time_left {colour} {_time_left(clock, self._knows)}")
        answer = program.ask(f"genmove {colour}", clock.limit_seconds)
        if answer.lower() == "resign":
            return Decision(RESIGN)
        try:
            return Decision(position.parse_action(answer))
        except ValueError as error:
            raise PlayerError(f"{ILLEGAL}: {error}") from error

    def observe(self, move: Move) -> None:
        """Send the opponent's move to the program.

        Raises:
          PlayerError: the program failed or refused a move that our rules allow.
        """
        self.program.ask(f"play {_colour(move.position.to_play)} {move.name}")

    def final_score(self) -> str | None:
        """Ask for the program's own score of the finished game, as "B+3.5"; None if it gives none,
        or counts territory, which our rules do not.

        Programs count territory if they say so (KataGo's kata-get-rules); so does GNU Go without
        --chinese-rules.
        """
        with contextlib.suppress(PlayerError):
            program = self.program
            if self._knows("final_score") and not self._counts_territory(program):
                return program.ask("final_score") or None
        return None

    def _counts_territory(self, program: GtpProgram) -> bool:
        if self._knows("kata-get-rules"):
            return "TERRITORY" in program.ask("kata-get-rules").upper()
        return program.ask("name") == "GNU Go" and "--chinese-rules" not in self.command

    def _knows(self, command: str) -> bool:
        return self.program.ask(f"known_command {command}").lower() == "true"


def _time_settings(clock: Clock, knows: Callable[[str], bool]) -> str:
    """Return the GTP command that sets a program's clock.

    The protocol has whole seconds, and neither several periods nor increments. Programs that know
    kata-time_settings are told all of it, those that know kgs-time_settings the periods. The others
    are sent one period, or no increment, and all of these whole seconds, which is less than they
    have.

    Raises:
      ValueError: whole seconds leave no time for a move.
    """
    main, period, periods = clock.main_seconds or 0.0, clock.period_seconds, clock.periods
    shortest = f"periods of {period:g} s" if periods else f"a main time of {main:g} s"
    if clock.seconds_per_move is not None:
        main, period, periods = 0.0, clock.seconds_per_move, 1
        shortest = f"{period:g} s for a move"
    if knows("kata-time_settings"):
        if periods:
            return f"kata-time_settings byoyomi {_exact(main)} {_exact(period)} {periods}"
        if clock.increment_seconds:
            increment = _exact(clock.increment_seconds)
            return f"kata-time_settings fischer {_exact(main)} {increment}"
        return f"kata-time_settings absolute {_exact(main)}"
    if (period if periods else main) < 1:
        raise ValueError(
            f"GTP has whole seconds, so a program without kata-time_settings cannot be told "
            f"{shortest}; give at least 1"
        )
    if clock.periods and knows("kgs-time_settings"):
        return f"kgs-time_settings byoyomi {int(main)} {int(period)} {periods}"
    return f"time_settings {int(main)} {int(period)} {1 if periods else 0}"


def _time_left(clock: Clock, knows: Callable[[str], bool]) -> str:
    """Return the seconds and stones of time_left: the main time, then the period, with the number
    of periods in place of the stones for a program that was told of several."""
    is_exact = knows("kata-time_settings")
    main, period = (
        _exact(seconds) if is_exact else str(int(seconds))
        for seconds in (clock.main_seconds or 0.0, clock.period_seconds)
    )
    if clock.main_seconds or not clock.periods:
        return f"{main} 0"
    return f"{period} {clock.periods if is_exact or knows('kgs-time_settings') else 1}"


def _exact(seconds: float) -> str:
    return f"{round(seconds, 3):.12g}"


def _colour(to_play: int) -> str:
    return "white" if to_play else "black"
