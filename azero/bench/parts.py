"""The parts of `azero bench all`: each runs in a separate process and returns figures with the
command for each.

`python -m azero.bench.parts NAME FILE [--quick]` measures one part and writes its record to FILE.
"""

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import jax

from azero import mesh as mesh_lib
from azero.bench.settings import SettingName
from azero.bench.timing import device_name
from azero.console.terminal import make_console

Status = Literal["done", "skipped", "failed"]


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    figure: str
    command: str


@dataclass(frozen=True)
class Record:
    """The result of a part."""

    part: str
    status: Status
    device: str
    """Kind and number of the devices, such as "1 x NVIDIA H200"."""
    quick: bool
    seconds: float
    figures: list[Figure] = field(default_factory=list)
    reason: str = ""
    """Why there are no figures."""


class Skipped(Exception):
    """A part does not fit this machine; the message says why."""


@dataclass(frozen=True)
class Part:
    """A measurement."""

    measure: Callable[[bool], list[Figure]]
    """(quick) -> figures

    Raises:
      Skipped: it does not fit this machine.
    """
    accelerators_only: bool = False
    """The part takes too long on a CPU."""
    virtual_devices: int | None = None
    """The part only compiles, for this number of virtual CPU devices."""


def on_cpu() -> bool:
    """Return whether the devices are a CPU's."""
    return jax.default_backend() == "cpu"


def installed(peer: str) -> str | None:
    """Return `peer` if it is installed; otherwise say so and return None."""
    if importlib.util.find_spec(peer) is not None:
        return peer
    print(f"{peer} is not installed: measured without it", flush=True)
    return None


def _times(ratio: float | None, peer: str) -> str:
    return "" if ratio is None else f", {ratio:.1f} times {peer}"


def _against(peer: str | None) -> str:
    return f" --against {peer}" if peer else ""


def _network(quick: bool) -> list[Figure]:
    from azero.bench import network

    blocks, filters, batch = (4, 96, 64) if on_cpu() else (20, 256, 1024)
    arguments = network.NetworkArguments(blocks=blocks, filters=filters, batch=batch)
    rows = network.run(replace(arguments, repeats=1) if quick else arguments)
    best = max(
        (row for row in rows if row.path.startswith("infer")),
        key=lambda row: row.positions_per_second,
    )
    how = f"{best.path.split()[1]} {best.dtype}"
    rate = f"{best.positions_per_second:,.0f} positions/s, {best.gflops / 1000:,.2f} TFLOP/s"
    return [
        Figure(
            f"inference, 19x19, {blocks} blocks of {filters}, batch {batch}, {how}",
            rate + _times(best.ratio, "nn.Conv"),
            f"azero bench network --blocks {blocks} --filters {filters} --batch {batch}",
        )
    ]


def _inference(quick: bool) -> list[Figure]:
    from azero.bench import inference

    if not on_cpu():
        raise Skipped("it compares with libraries for CPUs")
    arguments = inference.InferenceArguments()
    if quick:
        arguments = replace(arguments, networks=("5x4x32", "9x4x48"), batches=(64,), seconds=0.3)
    rows = inference.run(arguments, make_console(stderr=True))
    return [
        Figure(
            f"inference, {row.network}, {row.library} {row.how}, batch {row.batch}",
            f"{row.positions_per_second:,.0f} positions/s"
            + ("" if row.ratio is None else f"; ours {row.ratio:.2f} times that"),
            inference.COMMAND,
        )
        for row in rows
    ]


def _train(quick: bool) -> list[Figure]:
    from azero.bench import train

    arguments = train.TrainArguments(steps=2, repeats=1) if quick else train.TrainArguments()
    shape = "9x9, 6 blocks of 64, float32" if on_cpu() else "19x19, 20 blocks of 256, bfloat16"
    return [
        Figure(
            f"{row.what}, {shape}, batch {row.batch}",
            f"{row.positions_per_second:,.0f} positions/s, {row.flops / 1e12:,.2f} TFLOP/s, "
            + (f"{row.flops / row.peak:.0%} of the peak, " if row.peak else "")
            + f"{row.flops / row.product:.0%} of a matrix product",
            "azero bench train",
        )
        for row in train.run(arguments)
    ]


def _loop(setting: SettingName) -> Callable[[bool], list[Figure]]:
    def measure(quick: bool) -> list[Figure]:
        from azero.bench import loop

        # Nothing here touches a device before the peer has run: a process that has a GPU takes most
        # of its memory.
        peer = "pgx" if installed("pgx") and installed("mctx") else None
        ours, *others = loop.run(peer, setting, 1 if quick else 4)
        command = f"azero bench loop --setting {setting}{_against(peer)}"

        def line(what: str, name: str) -> Figure:
            ratio = getattr(ours, name) / getattr(others[0], name) if others else None
            return Figure(
                f"{what} at {setting}",
                f"{getattr(ours, name):,.1f} positions/s{_times(ratio, 'Pgx + mctx')}",
                command,
            )

        what = f"the network alone over self-play at {setting}"
        share = Figure(what, f"{ours.network_share or 0:.0%} of the time", command)
        parts = {"self-play": "selfplay", "learning": "learning", "whole loop": "loop"}
        return [*(line(text, name) for text, name in parts.items()), share]

    return measure


def _search(quick: bool) -> list[Figure]:
    from azero.bench import search

    against: Literal["mctx", "none"] = "mctx" if installed("mctx") else "none"
    arguments = search.SearchArguments(against)
    if quick:
        arguments = replace(arguments, batch=32, num_simulations=16, repeats=1)
    rows = search.run(arguments)
    command = f"azero bench search --against {against}"
    rates = {
        row.search: f"{row.simulations_per_second:,.0f} simulations/s, "
        f"the tree {row.tree_share:.0%} of the time"
        for row in rows
    }
    ratios = {
        row.search: f", {row.ours_faster:.1f} times {row.search}" for row in rows if row.ours_faster
    }
    peers = {"puct": ("mctx_puct", "muzero_policy"), "gumbel": ("mctx_gumbel",)}
    return [
        Figure(
            f"{name} search, 9x9",
            rates[name] + "".join(ratios.get(other, "") for other in peers[name]),
            command,
        )
        for name in peers
    ]


def _games(quick: bool) -> list[Figure]:
    from azero.bench import games

    peer = installed("pgx")
    rows = games.run(
        peer, ("go 9x9", "go 19x19") if quick else tuple(games.CONTESTS), 0.5 if quick else 3.0
    )
    command = f"azero bench games{_against(peer)}"
    return [
        Figure(
            f"{row['game']}, random play, legal mask every step",
            f"{row['steps_per_second']:,.0f} "
            f"steps/s{_times(row['ratio'] if peer else None, 'Pgx')}",
            command,
        )
        for row in rows
        if row["engine"] == "azero"
    ]


def _engine(quick: bool) -> list[Figure]:
    from azero.bench import engine

    batches = (8,) if quick else (1, 8, 32)
    rows = engine.run(engine.EngineArguments(batches=batches, visits=400))
    return [
        Figure(
            f"one tree, 19x19, 6 blocks of 96, batch {row.batch}",
            f"{row.visits_per_second:,.0f} visits/s, {row.network_share:.0%} of the time "
            f"in the network",
            "azero bench engine --batches 1 8 32 --visits 400",
        )
        for row in rows
    ] + [_tree(size, quick) for size in (9, 19)]


def _tree(size: int, quick: bool) -> Figure:
    """Return the speed of the tree itself, with a stand-in for the network."""
    from azero.bench import engine

    batch, visits = 256, 20_000 if quick else 50_000
    (row,) = engine.run(
        engine.EngineArguments(
            size=size, batches=(batch,), visits=visits, stand_in=True, overlaps=True
        )
    )
    return Figure(
        f"one tree without a network, {size}x{size}, batch {batch}",
        f"{row.visits_per_second:,.0f} visits/s",
        f"azero bench engine --size {size} --batches {batch} --visits {visits} --stand-in "
        "--overlaps",
    )


def _replay(quick: bool) -> list[Figure]:
    from azero.bench import replay

    rows = replay.run(20_000, 4) if quick else replay.run()
    return [
        Figure(
            f"replay, {row['board']}",
            f"{row['bytes per position']} bytes a position, {row['sampled from memory']:,.0f} "
            f"positions/s sampled; the learner waits {row['learner waits']:.1%}",
            replay.COMMAND,
        )
        for row in rows
    ]


def _rollouts(quick: bool) -> list[Figure]:
    from azero.bench import rollouts

    return [
        Figure(
            f"AlphaGo 2016, {row['size']}x{row['size']}: {row['what']}",
            f"{row['per_second']:,.0f}/s",
            "azero bench rollouts",
        )
        for row in rollouts.run(0.5 if quick else 3.0)
    ]


def _scaling(quick: bool) -> list[Figure]:
    from azero.bench import scaling

    setting: SettingName = "5x5" if quick else "9x9"
    _, many = scaling.run(scaling.many_games(setting), SCALING_DEVICES)
    return [
        Figure(
            f"self-play on {SCALING_DEVICES} virtual devices compared with one, total work, "
            f"{setting}, compiled only",
            f"{many.flops_efficiency:.1%} by flops, {many.bytes_efficiency:.1%} by bytes, "
            f"{many.collectives} collectives",
            f"azero bench scaling --setting {setting}",
        )
    ]


def _tpu(quick: bool) -> list[Figure]:
    from azero.bench import tpu

    if importlib.util.find_spec("libtpu") is None:
        raise Skipped("the TPU compiler is not installed: pip install libtpu")
    rows = [tpu.run(name=name) for name in tpu.GAMES[: 1 if quick else None]]
    return [
        Figure(
            f"step and mask of {row['games']:,} games of {row['game']} compiled for TPU "
            f"{row['topology']}",
            f"{row['compile_seconds']:.1f} s, {row['gather']} gathers, {row['scatter']} scatters",
            "azero bench tpu",
        )
        for row in rows
    ]


SCALING_DEVICES = 8
"""Virtual devices that are compared with one."""
PARTS: dict[str, Part] = {
    "network": Part(_network),
    "train": Part(_train),
    "loop 19x19": Part(_loop("19x19"), accelerators_only=True),
    "loop 9x9": Part(_loop("9x9")),
    "loop 5x5": Part(_loop("5x5")),
    "search": Part(_search),
    "games": Part(_games),
    "engine": Part(_engine),
    "inference": Part(_inference),
    "replay": Part(_replay),
    "rollouts": Part(_rollouts),
    "scaling": Part(_scaling, virtual_devices=SCALING_DEVICES),
    "tpu": Part(_tpu, virtual_devices=1),
}
"""In the order of measurement: parts that need an accelerator come first."""


def measure_part(name: str, quick: bool) -> Record:
    """Measure one part in this process."""
    mesh_lib.split_cpu()
    began = time.monotonic()
    try:
        figures, status, reason = PARTS[name].measure(quick), "done", ""
    except Skipped as skipped:
        figures, status, reason = [], "skipped", str(skipped)
    return Record(name, status, device_name(), quick, time.monotonic() - began, figures, reason)  # type: ignore[arg-type]


def environment(name: str) -> dict[str, str]:
    """Return the environment of the process that measures the part `name`."""
    devices = PARTS[name].virtual_devices
    return (
        dict(os.environ)
        if devices is None
        else {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices)}
    )


def main(arguments: list[str]) -> None:
    """Measure the part that is named first and write its record to the file named second; the word
    "device" only says what devices there are."""
    name, path, *flags = arguments
    if name == "device":
        mesh_lib.split_cpu()
        Path(path).write_text(device_name(), encoding="utf-8")
        return
    Path(path).write_text(
        json.dumps(asdict(measure_part(name, "--quick" in flags))), encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
