"""Learn from the games of a finished run alone, from one network: so that settings of the learner
are compared on the same games. The run's directory is copied first.

    python experiments/efficiency/learn_from_replay.py runs/chess out --root-value-share 0.9
"""

import argparse
import dataclasses
import shutil
import tempfile
from pathlib import Path

import jax

from azero import mesh
from azero.checkpoint import Checkpointer, export_network, load_settings
from azero.checkpoint.exported import write_exported
from azero.data.run_files import FIRST_NETWORK
from azero.train.loop import Loop
from azero.train.saving import restore_selfplay, with_first_network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--from-network", type=Path, help="instead of the one the run began with")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rate", type=float, default=8e-4, help="falls from 60%% of the steps on")
    parser.add_argument("--root-value-share", type=float, default=0.0)
    parser.add_argument("--lambda-return-share", type=float, default=0.0)
    args = parser.parse_args()
    last = int(0.6 * args.steps)
    with tempfile.TemporaryDirectory() as copies:
        workdir = Path(copies) / "run"
        shutil.copytree(args.run, workdir)
        config = load_settings(workdir)[1]
        if args.from_network is not None:
            shutil.rmtree(workdir / FIRST_NETWORK, ignore_errors=True)
            export_network(args.from_network, workdir / FIRST_NETWORK)
        learner = dataclasses.replace(
            config.learner,
            root_value_share=args.root_value_share,
            lambda_return_share=args.lambda_return_share,
            learning_rate=((0, 0.0), (100, args.rate), (last, args.rate), (args.steps, 0.0)),
            rate_between="linear",
        )
        config = dataclasses.replace(config, learner=learner)
        loop = Loop(config, mesh.make_mesh(), workdir)
        state, _ = restore_selfplay(Checkpointer(workdir, config), loop)
        fresh = loop.learner.init(jax.random.key(0))
        state.train = with_first_network(fresh, config.network, workdir, loop.game, loop.mesh)
        for event in loop.learn(state, args.steps):
            print(event, flush=True)
        write_exported(args.out, jax.device_get(state.train.variables), state.iteration, config)


if __name__ == "__main__":
    main()
