"""Self-play on many devices compared with one, read from the compiled programs without running
them: `azero bench scaling`.

The same games are compiled for one device and for several virtual devices of the CPU. The total
work of all devices should equal that of one, without any collectives.
"""

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import tyro

from azero import mesh as mesh_lib
from azero.bench.settings import SETTINGS, SettingName, make_config
from azero.config import check_range
from azero.console.progress import working
from azero.console.tables import Cell, results_table
from azero.console.terminal import make_console
from azero.networks.settings import ResNetConfig
from azero.plan.cost import Cost, Rates, module_cost
from azero.plan.hlo import parse
from azero.search.leaf import network_leaf
from azero.selfplay.selfplay import make_selfplay
from azero.settings import Config

MOVES = 8
"""Moves of a dispatch."""
NO_RATES = Rates(1.0, 1.0, 1.0, 1)
"""Work is compared here, not time."""


@dataclass(frozen=True)
class ScalingArguments:
    """Compile self-play for one and for several devices, and compare the work."""

    setting: SettingName = "9x9"
    """Board, network and simulations, as in `azero bench loop`."""
    devices: int = 8
    """Virtual devices that are compared with one."""


@dataclass(frozen=True)
class ScalingResult:
    """One program of self-play."""

    devices: int
    total: Cost
    """Totals over all devices for one dispatch."""
    collectives: int
    """Number of collectives."""
    flops_efficiency: float
    """Arithmetic of the one-device program divided by the total over all devices of this one."""
    bytes_efficiency: float

    def cells(self) -> dict[str, Cell]:
        """Return its row of the table."""
        return {
            "devices": self.devices,
            "GFLOP of products": f"{self.total.flops / 1e9:,.2f}",
            "GB in all": f"{self.total.hbm_bytes / 1e9:,.2f}",
            "flops, one over all": f"{self.flops_efficiency:.1%}",
            "bytes, one over all": f"{self.bytes_efficiency:.1%}",
            "collectives": self.collectives,
        }


def run(config: Config, devices: int) -> list[ScalingResult]:
    """Compile self-play of `config` for one and for `devices` devices.

    Raises:
      ValueError: there are fewer devices, or the games do not divide over them.
    """
    if len(jax.devices()) < devices:
        raise ValueError(
            f"{devices} devices are to be compared with one, and there are {len(jax.devices())}"
        )
    costs = {count: selfplay_cost(config, count) for count in (1, devices)}
    one, _ = costs[1]
    return [
        ScalingResult(
            count, total, collectives, one.flops / total.flops, one.hbm_bytes / total.hbm_bytes
        )
        for count, (total, collectives) in costs.items()
    ]


def many_games(setting: SettingName) -> Config:
    """Return the settings with as many games as an accelerator plays, so that every device has
    enough of them."""
    config = make_config(SETTINGS[setting])
    games = SETTINGS[setting].accelerator.games
    return dataclasses.replace(
        config,
        selfplay=dataclasses.replace(config.selfplay, num_games=games, moves_per_dispatch=MOVES),
    )


def selfplay_cost(config: Config, devices: int) -> tuple[Cost, int]:
    """Return what one dispatch of self-play does on the first `devices` devices together, and its
    collectives."""
    mesh = mesh_lib.make_mesh(jax.devices()[:devices])
    game = config.game.build()
    network = config.network.build(game)
    search = config.search.build(
        game, network_leaf(game, network.infer, config.search.random_symmetry)
    )
    selfplay = make_selfplay(config.selfplay, game, search, None, mesh)
    key = jax.random.key(0)
    params = jax.eval_shape(lambda key: network.fold(network.init(key)), key)
    carry = jax.eval_shape(selfplay.init, key)
    compiled = selfplay.play.lower(  # type: ignore[attr-defined]
        params, carry, key, jax.ShapeDtypeStruct((), jnp.float32)
    ).compile()
    module = parse(compiled.as_text())
    return module_cost(module, NO_RATES).times(devices), len(module.collectives())


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(ScalingArguments, args=arguments)
    check_range(chosen, "--", "devices", 1)
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", chosen.devices)
    config = many_games(chosen.setting)
    assert isinstance(config.network, ResNetConfig)
    what = f"compiling self-play at {chosen.setting} for 1 and {chosen.devices} devices"
    with working(what, make_console(stderr=True)):
        results = run(config, chosen.devices)
    title = (
        f"One dispatch of {config.selfplay.num_games} games of {chosen.setting}, "
        f"{config.network.blocks} blocks of {config.network.filters}, "
        f"{config.search.num_simulations} simulations"
    )
    make_console().print(results_table(results, title, 0))
