"""What each technique of docs/training-efficiently.md adds to the plain loop, and what the full set
loses without it: 7x7 Go, equal network operations, 400 games each.

    python experiments/efficiency/ablations/ablations.py --workdir runs/ablations

Each run and each match continues where it was cut off. `results-SEED.json` beside this file holds
what is done; those of all seeds are printed as a table at the end. On a machine of two cores, start
it twice, with seeds 0 and 1 and `taskset -c 0` and `taskset -c 1` before it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from azero.match.elo import elo_difference

HERE = Path(__file__).parent
HEADS = ("owners-score", "reply", "soft-policy", "short-values")
"""They need the pooled network."""
NOT_IN_FULL = ("fast-moves",)
KEPT = ("pooled", "owners-score", "reply", "surprise", "muon")
"""What helped in most comparisons of the full set; the techniques below are added to it."""
ADDED = {
    "bottlenecks": (),
    "archive-games": (),
    "archive-searches": (),
    "progressive": (),
    "moves-left": (),
    "lambda-return": (),
    "resign": (),
    "played-on": ("resign",),
    "puct": (),
    "forced-playouts": ("puct",),
    "root-temperature": ("puct",),
    "reduced-first-play": ("puct",),
    "variance-scale": ("puct",),
    "reuse-tree": ("puct",),
}
"""Techniques that are added to the kept ones, and what else both sides have then."""


Named = tuple[str, tuple[str, ...]]
"""A set of techniques and what it is called in the table."""


def comparisons(techniques: list[str]) -> list[tuple[Named, Named]]:
    """Return pairs of sets of techniques, of which the first plays the second."""
    plain = ("plain", ())
    full = ("full", tuple(name for name in techniques if name not in NOT_IN_FULL))
    pairs: list[tuple[Named, Named]] = [(full, plain)]
    for name in full[1]:
        left_out = (name, *HEADS) if name == "pooled" else (name,)
        rest = tuple(other for other in full[1] if other not in left_out)
        pairs.append((full, (f"full without {' '.join(left_out)}", rest)))
    pairs += [((f"full and {name}", (*full[1], name)), full) for name in NOT_IN_FULL]
    for name in techniques:
        base = ("pooled", ("pooled",)) if name in HEADS else plain
        alone = f"pooled and {name}" if name in HEADS else name
        pairs.append(((alone, (*base[1], name)), base))
    pairs.append((("kept", KEPT), full))
    for name, more in ADDED.items():
        rest = " and ".join(("kept", *more))
        pairs.append(((f"{rest} and {name}", (*KEPT, *more, name)), (rest, (*KEPT, *more))))
    return pairs


def directory(workdir: Path, chosen: tuple[str, ...], seed: int) -> Path:
    """Return where the run of a set of techniques is."""
    return workdir / f"{'+'.join(chosen) or 'plain'}-{seed}"


def train(workdir: Path, chosen: tuple[str, ...], seed: int) -> Path:
    """Train a network with these techniques, and return the directory of the run."""
    settings = tomllib.loads((HERE / "settings.toml").read_text())
    overlay: dict[str, dict[str, Any]] = settings["plain"] | {
        "run": settings["plain"]["run"] | {"seed": seed}
    }
    for name in chosen:
        for section, values in settings["techniques"][name].items():
            is_other_search = section == "search" and "name" in values
            overlay[section] = values if is_other_search else overlay[section] | values
    run = directory(workdir, chosen, seed)
    run.mkdir(parents=True, exist_ok=True)
    lines = [
        line
        for section, values in overlay.items()
        for line in (
            f"[{section}]",
            *(f"{key} = {json.dumps(value)}" for key, value in values.items()),
        )
    ]
    path = run / "overlay.toml"
    path.write_text("\n".join(lines) + "\n")
    experiment = [sys.executable, "-m", "azero.experiments.go7"]
    call([*experiment, "--config", str(path), "--workdir", str(run)], run / "log.txt")
    return run


def match(workdir: Path, first: tuple[str, ...], second: tuple[str, ...], seed: int) -> Any:
    """Play 400 games between two networks, and return the result."""
    runs = [train(workdir, chosen, seed) for chosen in (first, second)]
    out = workdir / "matches" / "-against-".join(run.name for run in runs)
    out.mkdir(parents=True, exist_ok=True)
    players = [f"checkpoint:{run}?visits=16" for run in runs]
    command = ["match", "--first", players[0], "--second", players[1], "--games", "400"]
    command += ["--random-plies", "4", "--out", str(out)]
    call([sys.executable, "-m", "azero", *command], out / "log.txt")
    return json.loads((out / "match.json").read_text())["result"]


def call(command: list[str], log: Path) -> None:
    """Run a command, with what it prints in `log`."""
    with log.open("a") as file:
        subprocess.run(command, check=True, stdout=file, stderr=subprocess.STDOUT)


def table() -> str:
    """Return the results of all seeds as rows of Markdown."""
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for path in sorted(HERE.glob("results-*.json")):
        for entry in json.loads(path.read_text()):
            elo, low, high = map(elo_difference, (entry["score"], *entry["interval"]))
            games = f"{entry['wins']}, {entry['draws']}, {entry['losses']}"
            cell = f"{games} | {elo:+.0f} ({low:+.0f} to {high:+.0f})"
            cells.setdefault((entry["first"], entry["second"]), {})[entry["seed"]] = cell
    seeds = sorted({seed for found in cells.values() for seed in found})
    names = "".join(f" seed {seed}: won, drawn, lost | Elo (95%) |" for seed in seeds)
    rows = [f"| first | second |{names}", "|---" * (2 + 2 * len(seeds)) + "|"]
    for (first, second), found in cells.items():
        results = " | ".join(found.get(seed, " | ") for seed in seeds)
        rows.append(f"| {first} | {second} | {results} |")
    return "\n".join(rows)


def main() -> None:
    """Run what is not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workdir", type=Path, required=True, help="where the runs are")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the first set of the only comparison to make")
    arguments = parser.parse_args()
    named = tomllib.loads((HERE / "settings.toml").read_text())["techniques"]
    techniques = [name for name in named if name not in ADDED]
    path = HERE / f"results-{arguments.seed}.json"
    results = json.loads(path.read_text()) if path.exists() else []
    for (first, first_set), (second, second_set) in comparisons(techniques):
        key = {"first": first, "second": second, "seed": arguments.seed}
        is_asked = arguments.only in (None, first)
        if is_asked and not any(key.items() <= entry.items() for entry in results):
            result = match(arguments.workdir, first_set, second_set, arguments.seed)
            names = ("wins", "draws", "losses", "score", "interval", "different_games")
            results.append(key | {name: result[name] for name in names})
            path.write_text(json.dumps(results, indent=1) + "\n")
            print(time.strftime("%H:%M:%S"), results[-1], flush=True)
    print(table())


if __name__ == "__main__":
    main()
