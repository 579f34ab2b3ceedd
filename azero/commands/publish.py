"""Ship a network with azero, replace one that ships by a stronger one, or add matches to its card.

python -m azero.commands.publish go9 runs/go9-long --match runs/ladder/gnu-go-level-10
python -m azero.commands.publish go9 --match runs/ladder/pachi-500-playouts

A network of that name that ships already is replaced only by one that beats it: they play a match,
and the lower end of the score's 95% interval must be above one half. The card says what made the
network, from the files of its run, and its matches, losses included; losing to a program is no
obstacle, leaving the match out would be.
"""

import dataclasses
import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from tyro.conf import Positional

from azero import mesh as mesh_lib
from azero.checkpoint import export_network, find_checkpoint
from azero.config import to_dict
from azero.console.interrupts import end_in_one_line
from azero.console.tables import count_of
from azero.console.terminal import make_console
from azero.data.files import read_header
from azero.data.rows import read_rows
from azero.data.run_files import METRICS, RUN, load_run
from azero.experiment import NAMES, load
from azero.games.settings import GameConfig
from azero.match.directory import read_match, read_match_games
from azero.match.games import summarise
from azero.match.matches import play_match
from azero.match.request import MatchRequest
from azero.models.registry import (
    MOST_BYTES,
    NETWORKS,
    Card,
    MeasuredMatch,
    ShippedNetwork,
    list_names,
    read_network,
    write_card,
)
from azero.players.clock import TimeControl
from azero.players.searches import visit_words
from azero.settings import Config


@dataclass(frozen=True)
class PublishRequest:
    """What to publish: a network with its card, or matches to add to a card."""

    name: Positional[str]
    """Name of the network in azero: go9."""
    checkpoint: Annotated[Positional[Path | None], tyro.conf.arg(metavar="[CHECKPOINT]")] = None
    """Directory of its run, or of an exported network; without it --match adds to the card of the
    network that ships."""
    iteration: int | None = None
    """Checkpoint of the run; default the newest."""
    run: Path | None = None
    """Directory with the run's files (run.json, metrics.jsonl); default that of the checkpoint, or
    the one above it."""
    games: int = 400
    """Games against the network that ships."""
    visits: int = 64
    """Visits per move of both in that match."""
    random_plies: int = 4
    """Random moves that begin every pair of its games."""
    out: Path | None = None
    """Directory of that match; default RUN/publish. The same command continues it."""
    match: tuple[Path, ...] = ()
    """Directories of its matches against others (azero match --out, azero ladder), for the card;
    the network is the first player there."""
    title: str | None = None
    """One line: the game, and what the network learned from; default that of the network that is
    replaced."""
    experiment: str | None = None
    """Directory of the repository with the run's record; default the run's directory if it is one
    of experiments/."""
    command: str | None = None
    """Command of the run; default that of its experiment with the settings that differ."""
    notes: str = ""
    """What a player should know."""


def publish(
    request: PublishRequest, root: Path = NETWORKS, console: Console | None = None
) -> ShippedNetwork:
    """Play the match where a network of that name ships, and write network and card.

    Raises:
      ValueError: the network does not beat the one that ships, plays something else, or would make
        the package too large.
      CheckpointError: it cannot be read.
    """
    console = console or make_console()
    if request.checkpoint is None:
        return _add_matches(request, read_network(request.name, root), root)
    checkpoint = request.checkpoint
    run = _find_run(request, checkpoint)
    experiment = request.experiment or run.as_posix()
    if not experiment.startswith("experiments/"):
        raise ValueError(
            f"{experiment} is not in experiments/: --experiment names the directory of the "
            "repository with the record of the run"
        )
    iteration, config = find_checkpoint(checkpoint, request.iteration)
    request = dataclasses.replace(request, iteration=iteration)  # the run may go on learning
    matches = [_measured(directory, request.name, iteration) for directory in request.match]
    old = read_network(request.name, root) if request.name in list_names(root) else None
    if old is not None:
        _check_same_game(old, config.game)
        matches.append(_beat(request, checkpoint, old, request.out or run / "publish", console))
    elif request.title is None:
        raise ValueError(f"{request.name} is new: --title says in one line what it is")
    title = request.title if old is None or request.title is not None else old.card.title
    assert title is not None
    _check_size(request, checkpoint, root)
    path = export_network(checkpoint, root / request.name, request.iteration, half=True)
    card = Card(
        title=title,
        sha256=read_header(path)[2],
        experiment=experiment,
        notes=request.notes,
        strength=tuple(matches),
        **_facts(run, config, iteration, request.command),
    )
    write_card(path.parent, card)
    console.print(f"{path.parent}: {title}")
    return read_network(request.name, root)


def _add_matches(request: PublishRequest, shipped: ShippedNetwork, root: Path) -> ShippedNetwork:
    """Add matches to a card; one against the same opponent at the same settings replaces that.

    Raises:
      ValueError: a match is not one of the network that ships, or none is named.
    """
    if not request.match:
        raise ValueError("nothing to do: name a checkpoint to publish, or matches with --match")
    added = [_measured(found, request.name, shipped.iteration) for found in request.match]
    known = {(match.opponent, match.settings) for match in added}
    kept = [
        match for match in shipped.card.strength if (match.opponent, match.settings) not in known
    ]
    card = dataclasses.replace(shipped.card, strength=(*added, *kept))
    write_card(shipped.directory, card)
    return read_network(request.name, root)


def _find_run(request: PublishRequest, checkpoint: Path) -> Path:
    """Return the directory with the files of the run.

    Raises:
      ValueError: there is none.
    """
    places = [checkpoint, checkpoint.parent]
    for place in places if request.run is None else [request.run]:
        if (place / RUN).exists():
            return place
    raise ValueError(
        f"no {RUN} in {request.run or checkpoint}: --run names the directory of the run"
    )


def _check_same_game(old: ShippedNetwork, new: GameConfig) -> None:
    before, after = old.config.game.build(), new.build()
    if (before.name, before.board_shape) != (after.name, after.board_shape):
        raise ValueError(
            f"{old.name} plays {before.name} on {_by(before.board_shape)}, the new network "
            f"{after.name} on {_by(after.board_shape)}; publish it under another name"
        )


def _by(shape: tuple[int, int]) -> str:
    return "x".join(map(str, shape))


def _beat(
    request: PublishRequest, checkpoint: Path, old: ShippedNetwork, out: Path, console: Console
) -> MeasuredMatch:
    """Play the match against the network that ships; return it.

    Raises:
      ValueError: the new network is not stronger with 95% confidence.
    """
    match = MatchRequest(
        first=f"checkpoint:{checkpoint}?visits={request.visits}&iteration={request.iteration}",
        # as seen from here: the record of the match names no folder of this machine
        second=f"checkpoint:{os.path.relpath(old.directory)}?visits={request.visits}",
        first_name="new",
        second_name=f"{request.name} of iteration {old.iteration}, which shipped before",
        games=request.games,
        random_plies=request.random_plies,
        out=out,
    )
    play_match(match, console)
    score = summarise(read_match_games(out)).score
    if score.low <= 0.5:
        raise ValueError(
            f"{checkpoint} does not replace {request.name}: it scores "
            f"{100 * score.score:.1f}% (95%: {100 * score.low:.1f} to {100 * score.high:.1f}) "
            f"against it, and the lower end must be above 50%"
        )
    assert request.iteration is not None
    return dataclasses.replace(_measured(out, request.name, request.iteration), command="")


def _check_size(request: PublishRequest, checkpoint: Path, root: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = export_network(checkpoint, Path(directory), request.iteration, half=True)
        size = path.stat().st_size
    others = [read_network(name, root) for name in list_names(root) if name != request.name]
    total = size + sum(other.num_bytes for other in others)
    if total > MOST_BYTES:
        raise ValueError(
            f"with {request.name} ({size:,} bytes) all networks have {total:,} bytes; the package "
            f"holds {MOST_BYTES:,}"
        )


def _facts(run: Path, config: Config, iteration: int, command: str | None) -> dict[str, Any]:
    """Return the facts of the card about how the network of `iteration` was made, from the files of
    its run."""
    facts = load_run(run).run
    rows = [row for row in read_rows(run / METRICS) if row["iteration"] <= iteration]
    name = str(facts.get("experiment"))
    return {
        "command": command or _command(name, config, facts.get("from_network")),
        "positions": rows[-1].get("positions") if rows else None,
        "hours": round(sum(row["seconds"] for row in rows) / 3600, 2) if rows else None,
        "hardware": f"{facts.get('devices')}, {facts.get('processor')}",
    }


def _command(experiment: str, config: Config, from_network: str | None = None) -> str:
    """Return the command that starts a run with these settings, from a network if one is named."""
    words = ["azero", "train", experiment]
    words += [] if from_network is None else ["--from-network", from_network]
    if experiment not in NAMES:
        return shlex.join(words)
    mine, defaults = to_dict(config), to_dict(load(experiment).config)
    for table, settings in mine.items():
        for key, value in settings.items():
            if value != defaults[table].get(key):
                words += _flag(table, key, value)
    return shlex.join(words)


def _flag(table: str, key: str, value: Any) -> list[str]:
    """Return the words by which the command line sets a value."""
    name = key.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{table}.{name}" if value else f"--{table}.no-{name}"]
    values = value if isinstance(value, list) else [value]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [f"--{table}.{name}", *map(str, flat)]


def _measured(directory: Path, name: str, iteration: int) -> MeasuredMatch:
    """Return the match in a directory as a card has it, with the network of `iteration` as `name`.

    Raises:
      ValueError: there is no finished match, or it is one of another network.
    """
    facts = read_match(directory)
    command, (first, second) = facts["command"], facts["players"]
    if first["iteration"] != iteration:
        raise ValueError(
            f"the match in {directory} is of iteration {first['iteration']}; {name} is of "
            f"iteration {iteration}"
        )
    result = facts.get("result")
    if not result:
        raise ValueError(f"the match in {directory} has no result yet")
    command = {**command, "first": f"model:{name}{_query(command['first'])}"}
    repeats = result.get("repeated_games", 0)
    settings = [_settings(command, first)]
    settings += [count_of(repeats, "repeated game")] if repeats else []
    return MeasuredMatch(
        opponent=second["name"],
        settings=", ".join(settings),
        won=result["wins"],
        drawn=result["draws"],
        lost=result["losses"],
        command=_match_command(command),
    )


def _query(player: str) -> str:
    _, separator, query = player.partition("?")
    options = [option for option in query.split("&") if not option.startswith("iteration=")]
    return separator + "&".join(options) if options != [""] else ""


def _settings(command: dict[str, Any], player: dict[str, Any]) -> str:
    """Return the settings that decide the games of a match, in words."""
    words = visit_words(player.get("visits"))
    if player.get("search") is not None:
        explores = f" with pb-c-init {player['pb_c_init']}" if "pb_c_init" in player else ""
        words.append(f"search {player['search']}{explores}")
    clock = command.get("clock") or {}
    words += [f"{name.replace('_', '-')} {value:g}" for name, value in clock.items() if value]
    if command.get("handicap") is not None:
        words.append(f"handicap {command['handicap']}")
    if command["komi"] is not None:
        words.append(f"komi {command['komi']:g}")
    if command["random_plies"]:
        words.append(f"{count_of(command['random_plies'], 'random move')} first")
    if command["temperature_moves"]:
        words.append(f"first {count_of(command['temperature_moves'], 'move')} sampled")
    if command["start_positions"]:
        words.append(f"from {command['start_positions'].partition(' (')[0]}")
    return ", ".join(words)


def _match_command(command: dict[str, Any]) -> str:
    """Return the command of a match."""
    command = {**command, **(command.get("clock") or {})}
    for name in ("openings", "start_positions"):  # the file's digest is no part of its name
        command[name] = command.get(name) and command[name].partition(" (sha256")[0]
    if command.get("sprt") is not None:
        command["sprt"] = ",".join(f"{elo:g}" for elo in command["sprt"])
    words = ["azero match"]
    for field in (*dataclasses.fields(MatchRequest), *dataclasses.fields(TimeControl)):
        value = command.get(field.name)
        if field.name != "clock" and value is not None and value != field.default:
            text = f'"{value}"' if isinstance(value, str) else f"{value}"
            words.append(f"--{field.name.replace('_', '-')} {text}")
    return " ".join(words)


def main(arguments: list[str] | None = None) -> None:
    """Publish what the command line says."""
    mesh_lib.split_cpu()
    prog = "python -m azero.commands.publish"
    publish(tyro.cli(PublishRequest, prog=prog, description=__doc__, args=arguments))


if __name__ == "__main__":
    with end_in_one_line():
        main()
