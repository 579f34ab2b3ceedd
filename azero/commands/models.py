"""`azero models`: the networks that ship, as a table, as JSON, or one of them with its card."""

import json
from collections.abc import Sequence

from azero.console.tables import Cell, facts_table, format_bytes, make_table
from azero.console.terminal import make_console
from azero.games.go.settings import GoConfig
from azero.models.registry import (
    NETWORKS,
    MeasuredMatch,
    ShippedNetwork,
    describe_network,
    list_names,
    read_network,
)

NOT_MEASURED = "not measured"
COLUMNS = ("name", "what it is", "won, drawn, lost")


def show_models(name: str | None, as_json: bool) -> None:
    """Print all networks, or one.

    Raises:
      ValueError: there is none of that name, or its files are damaged.
    """
    networks = [read_network(known) for known in (list_names() if name is None else [name])]
    console = make_console()
    if as_json:
        described = [describe_network(network) for network in networks]
        print(json.dumps(described if name is None else described[0], indent=2))
    elif name is None:
        table = make_table("", COLUMNS, [_row(network) for network in networks])
        table.columns[0].no_wrap = True  # names are typed
        console.print(table)
        size = format_bytes(sum(network.num_bytes for network in networks))
        console.print(
            f"{size} in {NETWORKS}\nazero models NAME says more; azero play NAME plays against it",
            soft_wrap=True,
        )
    else:
        console.print(facts_table(networks[0].card.title, _facts(networks[0])))


def _row(network: ShippedNetwork) -> Sequence[Cell]:
    strength = network.card.strength
    others = f" (and {len(strength) - 1} more)" if len(strength) > 1 else ""
    measured = f"{_score(strength[0])}{others}" if strength else NOT_MEASURED
    return network.name, network.card.title, measured


def _facts(network: ShippedNetwork) -> dict[str, Cell]:
    card = network.card
    matches = [
        f"{_score(match)} ({match.settings})" + (f"\n{match.command}" if match.command else "")
        for match in card.strength
    ]
    return {
        "name": network.name,
        "game": _game(network),
        "network": f"{_family(network)}, {network.parameters:,} parameters, "
        f"{format_bytes(network.num_bytes)}, iteration {network.iteration}",
        "made by": card.command,
        "record": card.experiment,
        "learned from": None if card.positions is None else f"{card.positions:,} positions",
        "hours": card.hours,
        "on": card.hardware,
        "won, drawn, lost": "\n\n".join(matches) or NOT_MEASURED,
        "notes": card.notes or None,
        "licence": card.licence,
        "file": str(network.directory),
    }


def _score(match: MeasuredMatch) -> str:
    return f"{match.won}, {match.drawn}, {match.lost} against {match.opponent}"


def _game(network: ShippedNetwork) -> str:
    game = network.config.game
    if not isinstance(game, GoConfig):
        return game.name
    board = f"{game.size[0]}x{game.size[-1]}"
    boards = f"{board}, other boards too" if network.config.network.FITS_ANY_BOARD else board
    return f"go {boards}, komi {game.komi:g}"


def _family(network: ShippedNetwork) -> str:
    settings = network.config.network
    size = f"{getattr(settings, 'blocks', '?')} blocks of {getattr(settings, 'filters', '?')}"
    return f"{settings.name}, {size}"
