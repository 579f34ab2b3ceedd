"""The networks that ship with azero: each an exported network with a card that says what made it
and how strong it is. Reading them needs no JAX.

networks/NAME/network.azero    the network (`azero.checkpoint.exported`)
networks/NAME/card.json        its card
"""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azero.data.files import read_header
from azero.data.rows import replace_text
from azero.data.run_files import EXPORTED, exported_settings
from azero.settings import Config

NETWORKS = Path(__file__).parent / "networks"
"""Where they are, in a checkout and in an installed package."""
CARD = "card.json"
MOST_BYTES = 15_000_000
"""All networks together: they are in every wheel."""


@dataclass(frozen=True)
class MeasuredMatch:
    """The score of a network against one opponent."""

    opponent: str
    settings: str
    """Visits, search, komi, openings: what decides the games."""
    won: int
    drawn: int
    lost: int
    command: str = ""
    """The command that played it."""

    @property
    def games(self) -> int:
        """All games."""
        return self.won + self.drawn + self.lost


@dataclass(frozen=True)
class Card:
    """The card of a network that ships."""

    title: str
    """One line: the game, and what it learned from."""
    sha256: str
    """Of the header of its file, which covers the whole file: a card is of one network."""
    experiment: str
    """Directory of the repository with the run's record."""
    command: str
    """The command of the run."""
    positions: int | None
    """Positions that it learned from; None where that was not recorded. The same holds for
    `hours`."""
    hours: float | None
    """Duration of the run on `hardware`."""
    hardware: str
    strength: tuple[MeasuredMatch, ...] = ()
    """Matches, those against other programs first; empty: not measured."""
    notes: str = ""
    """Remarks for players: weaknesses and rules."""
    licence: str = "Apache-2.0"


@dataclass(frozen=True)
class ShippedNetwork:
    """A network of the registry."""

    name: str
    directory: Path
    """Where its files are; every reader of exported networks takes it."""
    iteration: int
    """Iterations of its run."""
    config: Config
    """Settings of its run."""
    parameters: int
    num_bytes: int
    card: Card

    @property
    def summary(self) -> str:
        """One line about the network: "go9 (Go 9x9, ...)"."""
        return f"{self.name} ({self.card.title})"


def list_names(root: Path = NETWORKS) -> list[str]:
    """Return the names of the networks in alphabetical order, numbers by their size (go5 before
    go19)."""

    def key(name: str) -> list[tuple[int, str]]:
        parts = re.findall(r"\d+|\D+", name)
        return [(int(part), "") if part.isdigit() else (0, part) for part in parts]

    return sorted((path.parent.name for path in root.glob(f"*/{EXPORTED}")), key=key)


def find_network(name: str, root: Path = NETWORKS) -> Path:
    """Return the directory of the network `name`, which may have _ for -.

    Raises:
      ValueError: none of that name ships; those that do are listed.
    """
    known = name.replace("_", "-")
    if known not in (names := list_names(root)):
        raise ValueError(
            f"no network {name!r} ships with azero; those that ship are {', '.join(names)}"
        )
    return root / known


def read_network(name: str, root: Path = NETWORKS) -> ShippedNetwork:
    """Return the card, settings and sizes of the network `name`; its arrays are not read.

    Raises:
      ValueError: none of that name ships, or its files are damaged or do not belong together.
    """
    directory = find_network(name, root)
    path = directory / EXPORTED
    header, _, digest = read_header(path)
    iteration, config = exported_settings(path, header["facts"])
    card = _read_card(directory / CARD)
    if card.sha256 != digest:
        raise ValueError(f"{directory / CARD} is not the card of {path} but of another network")
    parameters = sum(
        math.prod(entry["shape"])
        for array, entry in header["arrays"].items()
        if array.startswith("params/")
    )
    size = path.stat().st_size
    return ShippedNetwork(directory.name, directory, iteration, config, parameters, size, card)


def _read_card(path: Path) -> Card:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        strength = tuple(MeasuredMatch(**match) for match in facts.pop("strength"))
        return Card(**facts, strength=strength)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not the card of a network: {error}") from error


def write_card(directory: Path, card: Card) -> None:
    """Write the card of the network in `directory`.

    Raises:
      OSError: it cannot be written.
    """
    replace_text(directory / CARD, json.dumps(dataclasses.asdict(card), indent=2) + "\n")


def describe_network(network: ShippedNetwork) -> Mapping[str, Any]:
    """Return everything about a network as plain values, for JSON."""
    game = dataclasses.asdict(network.config.game)
    family = dataclasses.asdict(network.config.network)
    return {
        "name": network.name,
        "game": game,
        "fits_any_board": network.config.network.FITS_ANY_BOARD,
        "network": family,
        "parameters": network.parameters,
        "bytes": network.num_bytes,
        "iteration": network.iteration,
        **dataclasses.asdict(network.card),
    }
