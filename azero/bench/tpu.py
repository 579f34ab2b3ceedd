"""The rules compiled for a TPU, one step and the legal mask: seconds, gathers, scatters, bytes.
Needs the package libtpu, but no TPU.

pip install libtpu
azero bench tpu
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import tyro

from azero.bench.games import CONTESTS
from azero.chips import parse_topology
from azero.console.terminal import make_console
from azero.plan.compiled import compile_program
from azero.plan.programs import lower_game_step, topology_mesh

TOPOLOGY = "v5e:2x4"
"""Eight chips of TPU v5e; others are v4:2x2x1, v5p:2x2x1, v6e:2x4."""
COUNTED = ("gather", "scatter", "while", "fusion", "all-reduce")
"""Instructions whose number is printed."""


GameName = Literal["go 19x19", "chess", "shogi"]
GAMES: tuple[GameName, ...] = get_args(GameName)
"""The compiled games, of `azero.bench.games.CONTESTS`."""


def run(
    topology: str = TOPOLOGY, name: GameName = "go 19x19", num_games: int = 1024
) -> dict[str, Any]:
    """Compile one step and the legal mask of `num_games` games of `name` for `topology`, sharded
    over its chips, and return the results.

    Raises:
      ValueError: libtpu is not installed, or it rejects the topology.
    """
    mesh = topology_mesh(parse_topology(topology))
    lowered = lower_game_step(CONTESTS[name].build(), mesh, num_games)
    compiled = compile_program(lowered, topology)
    counts = compiled.module.counts()
    return {
        "game": name,
        "topology": topology,
        "games": num_games,
        "compile_seconds": compiled.seconds,
        **{kind: counts[kind] for kind in COUNTED},
        "temporary_bytes": compiled.memory.temporaries,
    }


@dataclass(frozen=True)
class TpuArguments:
    """Compile the rules for a TPU: one step and the legal mask."""

    topology: str = TOPOLOGY
    """Kind and number of chips."""
    game: tyro.conf.UseAppendAction[tuple[GameName, ...]] = ()
    """Only this game; may be given several times."""


def main(arguments: list[str]) -> None:
    """Print the results of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(TpuArguments, args=arguments)
    for game in chosen.game or GAMES:
        for name, value in run(chosen.topology, game).items():
            make_console(highlight=False).print(
                f"{name}: {value:.1f}" if isinstance(value, float) else f"{name}: {value}"
            )
