"""Programs that speak UCI, USI or GNU Shogi's own commands, as players of chess and shogi."""

import re
from collections.abc import Sequence

from azero.games.game import Game
from azero.games.position import Position
from azero.players.clock import LAG_SECONDS, Clock, thinking_seconds
from azero.players.notation import NOTATIONS
from azero.players.player import ILLEGAL, RESIGN, Decision, Move, PlayerError
from azero.players.program import ExternalProgram, ProgramPlayer
from azero.players.uci_go import OWN_MOVES, START

_NO_MOVE = ("(none)", "none", "0000", "null")
"""Answers of programs that have no legal move."""
RESIGN_MOVES = 10
"""Moves in a row for `UciPlayer`'s resign_score (AZ, methods: -900 centipawns for ten moves)."""
_OPTION = re.compile(r"option name (.+?) type (check|spin|combo|button|string)\b(.*)")
_RANGE = re.compile(r" min (-?\d+) max (-?\d+)")
_SCORE = re.compile(r"\bscore (cp|mate) ([-+]?\d+)")
_NO_CHESS960 = ("UCI_Chess960", "false")
"""Sent to every program that has the option. Sjaak II has it on by default, and then names castling
by the rook's square (e1h1)."""
_LESSER = re.compile(r"\bmultipv (?!1\b)")
"""In a line about a move that is not the best."""


def _clock_words(clock: Clock, to_play: int, protocol: str) -> str:
    """Return what follows `go` for the clock of the side to move; where the opponent's time is not
    known, it is sent as equal. A fixed time for a move is reduced by LAG_SECONDS, at most by half.

    UCI has no byo-yomi: a period is sent as an increment, the first of which has been added.
    """
    if clock.seconds_per_move is not None or clock.main_seconds is None:
        seconds = clock.seconds_per_move or 1.0
        return f"movetime {round(1000 * max(seconds - LAG_SECONDS, seconds / 2))}"
    other = clock.main_seconds if clock.opponent_seconds is None else clock.opponent_seconds
    own, other, added, period = (
        round(1000 * seconds)
        for seconds in (clock.main_seconds, other, clock.increment_seconds, clock.period_seconds)
    )
    first, second = (other, own) if to_play else (own, other)
    if protocol == "usi" and not added:
        return f"btime {first} wtime {second} byoyomi {period}"
    a, b = "bw" if protocol == "usi" else "wb"
    first, second, added = first + period, second + period, added or period
    return f"{a}time {first} {b}time {second} {a}inc {added} {b}inc {added}"


def _allowed_values(option: re.Match[str], value: str) -> str | None:
    """Return the values that an option may have, in words, if the program states them and `value`
    is not one of them."""
    _, kind, facts = option.groups()
    if kind == "spin" and (found := _RANGE.search(facts)):
        low, high = map(int, found.groups())
        is_one = re.fullmatch(r"-?[0-9]+", value) is not None and low <= int(value) <= high
        return None if is_one else f"an integer from {low} to {high}"
    if kind not in ("check", "combo"):
        return None
    names = ["true", "false"] if kind == "check" else re.split(r"\s+var\s+", facts)[1:]
    return None if value in names or not names else f"one of {', '.join(names)}"


class UciPlayer(ProgramPlayer[ExternalProgram]):
    """A UCI or USI program as a Player: a new process for every game."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        game: Game,
        *,
        options: Sequence[tuple[str, str]] = (),
        go: str,
        timeout: float = 60.0,
        resign_score: int | None = None,
    ) -> None:
        """Make a player; nothing is started before `reset`.

        Args:
          name: the name of this player in reports.
          command: the words of the command line.
          game: chess or minichess, which are played by UCI, or shogi, by USI. A game begins with
            the first position that the player is shown.
          options: names and values for `setoption`; names are not case-sensitive.
          go: what follows `go` at every move, such as "nodes 1000"; empty sends the clock.
          timeout: seconds that the program may take to answer.
          resign_score: it resigns after RESIGN_MOVES moves in a row with a score at least this many
            centipawns behind; None leaves resignation to the program.
        """
        super().__init__(name, command, ExternalProgram, timeout)
        self._resign_score = resign_score
        self._bad_moves = 0
        self._notation = NOTATIONS[game.name]
        self._beginning = ""
        self._options = list(options)
        self._go = go
        self._moves: list[str] = []

    def reset(self) -> None:
        """Restart the program and send it the options.

        Raises:
          ValueError: the program cannot be started, or has no such option or value.
          PlayerError: it failed.
        """
        self._beginning, self._moves, self._bad_moves = "", [], 0
        program, protocol = self.restart(), self._notation.protocol
        known = program.ask(protocol, lambda line: line == f"{protocol}ok", self._timeout)
        lines = (" ".join(line.split()) for line in known)
        found = (option for line in lines if (option := _OPTION.match(line)))
        options = {option[1].lower(): option for option in found}
        usual = [_NO_CHESS960] if _NO_CHESS960[0].lower() in options else []
        for name, value in [*usual, *self._options]:
            option = options.get(name.lower())
            if option is None:
                names = ", ".join(sorted(option[1] for option in options.values()))
                raise ValueError(f"{self.name} has no option {name!r}; it has {names}")
            if values := _allowed_values(option, value):
                # The program would ignore it, and play under a name that says otherwise.
                raise ValueError(f"{self.name}: option {name!r} is {values}, not {value}")
            program.send(f"setoption name {option[1]} value {value}", "setoption")
        program.send(f"{protocol}newgame", f"{protocol}newgame")
        program.ask("isready", lambda line: line == "readyok", self._timeout)

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Ask for a move.

        Raises:
          PlayerError: the program failed, or its answer is not a legal move under our rules.
        """
        program = self.program
        self._begin(position)
        moves = f" moves {' '.join(self._moves)}" if self._moves else ""
        program.send(f"position {self._beginning}{moves}", "position")
        go = self._go or _clock_words(clock, position.to_play, self._notation.protocol)
        timeout = self._timeout if clock.limit_seconds is None else clock.limit_seconds
        lines = program.ask(f"go {go}", lambda line: line.split()[:1] == ["bestmove"], timeout)
        answer = lines[-1].split()
        name = answer[1] if len(answer) > 1 else ""
        if name == "resign" or self._wants_to_resign(lines):
            return Decision(RESIGN)
        if name == "win":
            raise PlayerError("declares a win that the rules do not give it")
        if name in _NO_MOVE:
            raise PlayerError(f"says {name!r} although it has legal moves")
        try:
            action = self._notation.parse_move(position, name)
        except ValueError as error:
            raise PlayerError(f"{ILLEGAL}: {error}") from error
        self._moves.append(name)
        return Decision(action)

    def _wants_to_resign(self, lines: Sequence[str]) -> bool:
        """Count moves in a row with a last score below the limit, and return whether they are
        enough."""
        if self._resign_score is None:
            return False
        best = [line for line in lines if not _LESSER.search(line)]
        scores = [found for line in best if (found := _SCORE.search(line))]
        kind, number = scores[-1].groups() if scores else ("cp", "0")
        is_bad = int(number) <= (-self._resign_score if kind == "cp" else -1)
        self._bad_moves = self._bad_moves + 1 if is_bad else 0
        return self._bad_moves >= RESIGN_MOVES

    def observe(self, move: Move) -> None:
        """Note a move; the next request sends all of them to the program."""
        self._begin(move.position)
        self._moves.append(move.name)

    def _begin(self, position: Position) -> None:
        """Note where the game begins, if this is its first position."""
        if not self._beginning:
            first = self._notation.format_position(self._notation.board_of(position.state))
            is_usual = first == self._notation.start
            self._beginning = START if is_usual else f"{self._notation.keyword} {first}"


class GnuShogiPlayer(ProgramPlayer[ExternalProgram]):
    """GNU Shogi 1.4 as a Player, by the commands of its text terminal: a new process for every
    game.

    It stays in its mode `force`, in which it takes moves of both sides and answers each with a line
    ("3. 8c8d 29981"), and moves at `go`; it then prints "2. ... 8h7g 29981" at the end of a line.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        depth: int | None = None,
        timeout: float = 60.0,
        is_timed: bool = False,
    ) -> None:
        """Make a player called `name`; nothing is started before `reset`. It looks `depth` plies
        ahead; None leaves it to its own clock of five minutes, or in a timed game (`is_timed`) to
        the time for a move that its clock in the game allows. `timeout` is in seconds, for an
        answer."""
        super().__init__(name, command, ExternalProgram, timeout)
        self._depth = depth
        self._is_timed = is_timed

    def reset(self) -> None:
        """Restart the program.

        Raises:
          ValueError: the program cannot be started.
          PlayerError: it failed.
        """
        program = self.restart()
        program.send("force", "force")
        if self._depth is not None:
            program.send(f"depth\n{self._depth}", "depth")

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Ask for a move.

        Raises:
          PlayerError: the program failed, or its move is not legal under our rules.
        """
        if self._is_timed and self._depth is None:
            self.program.send(_level(clock, position), "level")
        line = self._ask(
            "go", r"\d+\. \.\.\. \S+|[Rr]esigns|Drawn game|mates!", clock.limit_seconds
        )
        if "esigns" in line:
            return Decision(RESIGN)
        found = re.search(r"\d+\. \.\.\. (\S+)", line)
        if found is None:
            raise PlayerError(f"does not move: it says {line!r}")
        self.program.send("force", "force")
        try:
            return Decision(NOTATIONS["shogi"].parse_move(position, found.group(1)))
        except ValueError as error:
            raise PlayerError(f"{ILLEGAL}: {error}") from error

    def observe(self, move: Move) -> None:
        """Send a move to the program.

        Raises:
          PlayerError: the program failed or refused a move that our rules allow.
        """
        line = self._ask(move.name, rf"\d+\. {re.escape(move.name)}(\s|$)|Illegal move")
        if "Illegal" in line:
            raise PlayerError(f"refused {move.name!r}: {line}")

    def _ask(self, question: str, answer: str, timeout: float | None = None) -> str:
        """Send a line and return the first line of output that matches the regular expression
        `answer`."""
        pattern, seconds = re.compile(answer), timeout or self._timeout
        return self.program.ask(question, lambda line: bool(pattern.search(line)), seconds)[-1]


def _level(clock: Clock, position: Position) -> str:
    """Return GNU Shogi's command for the time of the next move, in whole seconds, of which it
    needs one and a little more; with less than two left, that to look one ply ahead, which it keeps
    to in this game."""
    if clock.limit_seconds is not None and clock.limit_seconds < 2.0:
        return "depth\n1"
    rows, columns = position.game.board_shape
    num_moves = len(position.actions)
    seconds = thinking_seconds(clock, num_moves, rows * columns, own_moves=OWN_MOVES) or 0.0
    minutes, rest = divmod(max(1, int(seconds)), 60)
    return f"level 1 {minutes}:{rest:02d}"
