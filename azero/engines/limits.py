"""The settings of a GTP engine: limits, clocks, resignation, pondering."""

from dataclasses import dataclass, field

from azero.players.clock import LAG_SECONDS, Clock, thinking_seconds
from azero.players.thinking import Limits


@dataclass
class Settings:
    """Settings of an engine, and the clocks of both sides. Values are in [-1, 1] for the side to
    move."""

    visits: int | None = 400
    playouts: int | None = None
    seconds: float | None = None
    """Limits per move, in addition to the clock's."""
    ponders: bool = False
    """Think in the opponent's time."""
    resign_threshold: float = -0.9
    """KataGo's default."""
    resign_turns: int = 3
    """Own moves in a row at or below the threshold before resigning (KataGo's default)."""
    allows_resignation: bool = True
    lag_seconds: float = LAG_SECONDS
    """Subtracted from every move's time for lag."""
    pv_length: int = 15
    may_ponder: bool = False
    """The engine moved last, and no command has ended pondering."""
    result: str = ""
    """RE property of the game after a resignation."""
    thinking_seconds: float = 0.0
    """Time spent on moves since the start of the program."""
    _hopeless: dict[int, int] = field(default_factory=dict)
    _control: Clock | None = None
    _most_seconds: float | None = None
    _clocks: dict[int, Clock] = field(default_factory=dict)

    def new_game(self) -> None:
        """Restart both clocks and reset the state of the last game."""
        self.take_back()
        self.may_ponder = False
        self._clocks = {}

    def take_back(self) -> None:
        """Forget how the game ended and the values of its last moves: a move was taken back."""
        self.result = ""
        self._hopeless = {}

    def set_time(self, control: Clock | None, most_seconds: float | None = None) -> None:
        """Play with this clock from now on, None without; `most_seconds` is the longest any move
        may take."""
        self._control, self._most_seconds = control, most_seconds
        self._clocks = {}

    def set_time_left(self, colour: int, seconds: float, stones: int) -> None:
        """Set one side's clock; `stones` is 0 in main time, otherwise the stones (Canadian) or the
        periods (Japanese, as KGS has it) that are left."""
        clock = self._control or Clock(main_seconds=seconds)
        if stones == 0:
            clock = clock._replace(main_seconds=seconds)
        elif clock.periods > 0:
            clock = clock._replace(main_seconds=0.0, period_seconds=seconds, periods=stones)
        else:
            clock = clock._replace(
                main_seconds=0.0,
                period_left=seconds,
                moves_left=stones,
                period_moves=max(1, clock.period_moves),
            )
        self._clocks[colour] = clock

    def limits(self, colour: int, num_moves: int, num_points: int) -> Limits:
        """Return when to stop thinking about the next move, of `colour`, on a board of `num_points`
        after `num_moves` moves of both sides.

        Raises:
          ValueError: nothing limits it, so that it would never end.
        """
        clock = self._clock(colour)
        bounds = [self.seconds, self._most_seconds]
        if clock is not None:
            bounds.append(thinking_seconds(clock, num_moves, num_points, self.lag_seconds))
        seconds = min((bound for bound in bounds if bound is not None), default=None)
        if self.visits is None and self.playouts is None and seconds is None:
            raise ValueError(
                "nothing limits the thinking: set a clock (time_settings), or maxVisits, "
                "maxPlayouts or maxTime (kata-set-param)"
            )
        return Limits(visits=self.visits, playouts=self.playouts, seconds=seconds)

    def spend(self, colour: int, seconds: float) -> None:
        """Subtract time from a side's clock, for controllers that send no time_left."""
        clock = self._clock(colour)
        if clock is not None and self._control is not None:
            left = clock.after(seconds) or clock._replace(main_seconds=0.0, period_left=0.0)
            self._clocks[colour] = left._replace(period_seconds=self._control.period_seconds)

    def _clock(self, colour: int) -> Clock | None:
        return self._clocks.get(colour, self._control)

    def wants_to_resign(self, colour: int, value: float) -> bool:
        """Record a side's value of its position; return whether it has been below the threshold for
        enough moves in a row."""
        count = self._hopeless.get(colour, 0) + 1 if value <= self.resign_threshold else 0
        self._hopeless[colour] = count
        return self.allows_resignation and count >= self.resign_turns

    def get_param(self, name: str) -> str:
        """Return a parameter under KataGo's name as text."""
        field_name = _known(name)
        value = getattr(self, field_name)
        if value is None:
            return "unlimited"
        return str(value).lower() if isinstance(value, bool) else f"{value:.12g}"

    def set_param(self, name: str, text: str) -> None:
        """Set a parameter under KataGo's name from text."""
        field_name = _known(name)
        setattr(self, field_name, PARAMETERS[name][1](text))


def _known(name: str) -> str:
    if name not in PARAMETERS:
        raise ValueError(
            f"unknown parameter {name[:40]!r}; the parameters are {' '.join(PARAMETERS)}"
        )
    return PARAMETERS[name][0]


def _count(text: str, or_unlimited: bool = False) -> int | None:
    if or_unlimited and text.lower() == "unlimited":
        return None
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:12]) <= 10**9:
        other = ", nor unlimited" if or_unlimited else ""
        raise ValueError(f"{text[:20]!r} is not a whole number from 1 to 1000000000{other}")
    return int(text)


def _between(text: str, least: float, most: float, or_unlimited: bool = False) -> float | None:
    if or_unlimited and text.lower() == "unlimited":
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise ValueError(f"{text[:20]!r} is not a number from {least:g} to {most:g}")
    return value


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text[:20]!r} is not true or false")
    return text.lower() == "true"


PARAMETERS = {
    "maxVisits": ("visits", lambda text: _count(text, or_unlimited=True)),
    "maxPlayouts": ("playouts", lambda text: _count(text, or_unlimited=True)),
    "maxTime": ("seconds", lambda text: _between(text, 0.0, 1e9, or_unlimited=True)),
    "ponderingEnabled": ("ponders", _flag),
    "lagBuffer": ("lag_seconds", lambda text: _between(text, 0.0, 60.0)),
    "allowResignation": ("allows_resignation", _flag),
    "resignThreshold": ("resign_threshold", lambda text: _between(text, -1.0, 1.0)),
    "resignConsecTurns": ("resign_turns", _count),
    "analysisPVLen": ("pv_length", _count),
}
"""The parameters that can be read and set: what `Settings` calls each, and what reads its value."""
