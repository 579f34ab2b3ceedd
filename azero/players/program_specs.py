"""Other programs by name: GTP for Go, UCI for chess, USI or GNU Shogi's own commands for shogi."""

import dataclasses
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from azero.games.go.settings import GoConfig
from azero.games.settings import GameConfig
from azero.models.naming import PROTOCOL_GAMES, read_options
from azero.players.clock import Clock
from azero.players.gtp_player import GtpPlayer
from azero.players.player import MakePlayer, Player
from azero.players.program import find_program
from azero.players.uci_player import GnuShogiPlayer, UciPlayer

FORMS = (
    '"gtp:PROGRAM ARGUMENTS", "uci:PROGRAM?skill=0&nodes=1000", "usi:PROGRAM?movetime=100" or '
    '"gnushogi:PROGRAM?depth=2"'
)
_LIMITS = ("nodes", "movetime", "depth")
_NUMBERS = ("skill", "elo", *_LIMITS)
_SETTINGS = re.compile(rf"\?(?=option\.|(?:{'|'.join(_NUMBERS)})=)")
_OTHER_SETTINGS = re.compile(r"\?(?=[^?\s]*=[^?]*$)")
_DEFAULT_GO = "movetime 1000"
"""The arguments of `go` of a program without limits of its own: a second for each move."""
_VARIANTS = {"chess": "chess", "gardner": "minichess"}
"""Games by the values of the option UCI_Variant of Fairy-Stockfish."""


@dataclass(frozen=True)
class GtpSpec:
    """A GTP program as a player."""

    command: tuple[str, ...]
    game = "go"

    @property
    def name(self) -> str:
        """Its name in results."""
        return Path(self.command[0]).name


@dataclass(frozen=True)
class UciSpec:
    """A UCI or USI program as a player."""

    command: tuple[str, ...]
    game: str
    """Its game: chess with UCI, or the variant that its options name; shogi with USI."""
    options: tuple[tuple[str, str], ...] = ()
    """Names and values for setoption."""
    limits: str | None = None
    """The arguments of `go`; empty sends the clock, None is the default, a second for a move."""

    @property
    def go(self) -> str:
        """The arguments of `go` at every move; empty sends the clock."""
        return _DEFAULT_GO if self.limits is None else self.limits

    @property
    def name(self) -> str:
        """Its name in results."""
        shown = [f"{name} {value}" for name, value in self.options if name != "UCI_LimitStrength"]
        return ", ".join([Path(self.command[0]).name, *shown, *([self.go] if self.go else [])])

    def by_clock(self) -> "UciSpec":
        """Return the program in a match by the clock: without limits of its own it is sent the
        time."""
        return dataclasses.replace(self, limits="") if self.limits is None else self


@dataclass(frozen=True)
class GnuShogiSpec:
    """GNU Shogi as a player."""

    command: tuple[str, ...]
    depth: int | None = None
    game = "shogi"

    @property
    def name(self) -> str:
        """Its name in results."""
        return Path(self.command[0]).name + ("" if self.depth is None else f", depth {self.depth}")


ProgramSpec = GtpSpec | UciSpec | GnuShogiSpec


def long_name(spec: ProgramSpec) -> str:
    """Return the name of a program with its whole command line."""
    words = " ".join(spec.command)
    return words if isinstance(spec, GtpSpec) else f"{spec.name} ({words})"


def parse_program(text: str) -> ProgramSpec | None:
    """Return the program that `text` names; None if it has none of the forms of programs.

    Raises:
      ValueError: it has one, but is not understood.
    """
    kind, _, rest = text.partition(":")
    if kind not in ("gtp", "gnushogi", *PROTOCOL_GAMES) or not rest.strip(" ?"):
        return None
    words, query = (rest, "") if kind == "gtp" else _split_settings(rest)
    try:
        command = tuple(shlex.split(words))
    except ValueError as error:
        raise ValueError(f"the command in {text!r} is not understood: {error}") from error
    if not command:
        return None
    if kind == "gtp":
        return GtpSpec(command)
    settings = read_options(query, text)
    if kind == "gnushogi":
        for name, value in settings:
            if name != "depth" or not value.isdigit():
                raise ValueError(
                    f"{name}={value} in {text!r} is not understood; gnushogi takes depth=NUMBER"
                )
        return GnuShogiSpec(command, int(dict(settings)["depth"]) if settings else None)
    return _uci_spec(text, command, PROTOCOL_GAMES[kind], settings)


def _split_settings(text: str) -> tuple[str, str]:
    """Return a command line and the settings after it. They begin at the first question mark before
    a setting of azero, else at the last one before anything of the form NAME=VALUE; both parts may
    have question marks in them."""
    found = _SETTINGS.search(text) or _OTHER_SETTINGS.search(text)
    return (text[: found.start()], text[found.end() :]) if found else (text, "")


def _uci_spec(
    text: str, command: tuple[str, ...], game: str, settings: list[tuple[str, str]]
) -> UciSpec:
    options: list[tuple[str, str]] = []
    limits: list[str] = []
    for name, value in settings:
        if name.startswith("option."):
            options.append((name.removeprefix("option."), value))
        elif not re.fullmatch(r"-?\d+", value) or name not in _NUMBERS:
            raise ValueError(
                f"{name}={value} in {text!r} is not understood; there are "
                f"{', '.join(_NUMBERS)} = NUMBER and option.NAME=VALUE"
            )
        elif name == "skill":
            options.append(("Skill Level", value))
        elif name == "elo":
            options += [("UCI_LimitStrength", "true"), ("UCI_Elo", value)]
        elif int(value) < 1:
            raise ValueError(f"{name}={value} in {text!r}: at least 1")
        else:
            limits += [name, value]
    variant = next((value for name, value in options if name.lower() == "uci_variant"), game)
    if game == "chess":
        if variant not in _VARIANTS:
            known = ", ".join(_VARIANTS)
            raise ValueError(f"the variants of chess here are {known}, not {variant} in {text!r}")
        game = _VARIANTS[variant]
    return UciSpec(command, game, tuple(options), " ".join(limits) or None)


def program_maker(
    spec: ProgramSpec,
    name: str,
    rules: GameConfig,
    timeout: float,
    first_seed: int,
    clock: Clock | None = None,
    resign_score: int | None = None,
) -> MakePlayer:
    """Return the function that makes the program's player of a game, which is called `name`;
    `{seed}` in a GTP program's command becomes `first_seed` plus the game's number.

    `clock` is each player's at the start of a game, and `resign_score` as in `UciPlayer`.

    Raises:
      ValueError: there is no such program.
    """
    command = [find_program(spec.command[0]), *spec.command[1:]]
    if isinstance(spec, GtpSpec):
        assert isinstance(rules, GoConfig)
        size, komi = rules.size[0], rules.komi

    def make_player(number: int) -> Player:
        if isinstance(spec, GtpSpec):
            words = [word.replace("{seed}", str(first_seed + number)) for word in command]
            return GtpPlayer(name, words, size=size, komi=komi, timeout=timeout, clock=clock)
        if isinstance(spec, GnuShogiSpec):
            is_timed = clock is not None
            return GnuShogiPlayer(
                name, command, depth=spec.depth, timeout=timeout, is_timed=is_timed
            )
        return UciPlayer(
            name,
            command,
            rules.build(),
            options=spec.options,
            go=spec.go,
            timeout=timeout,
            resign_score=resign_score,
        )

    return make_player
