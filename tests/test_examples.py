"""Every page has examples that run: its Python, and commands as the page shows them. A command that
takes hours gets smaller sizes behind it."""

import dataclasses
import gzip
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from needs import require_module

from azero.experiment import load

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SMOKE = " --config configs/smoke.toml"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)```", re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    "README.md": "tests/test_docs.py",
    "adding-a-game.md": "tests/test_docs.py",
    "adding-a-network.md": "tests/test_docs.py",
    "adding-a-search.md": "tests/test_docs.py",
    "colab.md": "tests/colab/test_notebooks.py",
    "interop.md": "tests/interop/test_interop_page.py",
    "planning.md": "tests/plan/test_plan.py",
    "python.md": "tests/test_docs.py",
}
"""Pages whose examples other tests run, which name them."""


@dataclasses.dataclass(frozen=True)
class Example:
    """A command of a page, a pattern that its output contains, what is appended to it to make it
    smaller, its input, and a module that it needs and azero can do without."""

    command: str
    output: str
    smaller: str = ""
    stdin: str = ""
    needs: str = ""


QUICK = {
    "cloud-tpu.md": [
        Example(
            "azero tpu create my-go9 --accelerator v5litepod-8 --spot",
            "queued-resources create my-go9",
            "--zone us-west4-a --project my-project --dry-run",
        )
    ],
    "faq.md": [Example("azero doctor go5 --no-compile", "replay window on disk")],
    "human.md": [
        Example(
            "azero data import games/ more.sgf.gz archive.zip --out data/kgs --min-rank 6d "
            "--max-handicap 0 --min-moves 30",
            "positions",
        ),
        Example("azero data show data/kgs --positions 3", r"(?s)A B C D E F G.*A B C D E F G"),
    ],
    "networks.md": [
        Example("azero models", r"animal-shogi[\s\S]+go9"),
        Example("azero models go9", "GNU Go"),
    ],
}
LONG = {
    "alphago2016.md": [Example("azero bench rollouts", "rollouts", "--seconds 0.2")],
    "benchmarks.md": [
        Example("azero bench replay", "bytes a position", "--positions 2000 --steps 2")
    ],
    "elastic.md": [
        Example(
            "python -m azero.experiments.tictactoe --cluster ray --workers 2",
            "finished: 2 iterations",
            SMOKE,
            needs="ray",
        )
    ],
    "engines.md": [
        Example("azero gtp go9 --visits 400", r"= [A-J]\d", stdin="boardsize 9\ngenmove b\nquit\n"),
        Example('azero uci --random-net "chess?blocks=2&filters=32"', "uciok", stdin="uci\nquit\n"),
    ],
    "guis.md": [
        Example(
            r"printf 'name\nboardsize 9\ngenmove b\nquit\n' | azero gtp go9 --visits 50",
            r"= azero[\s\S]+= [A-J]\d",
        ),
        Example(
            r"printf 'uci\nposition startpos\ngo nodes 20\n' | "
            'azero uci --random-net "chess?blocks=1&filters=8"',
            r"uciok[\s\S]+bestmove [a-h][12][a-h][34]",
        ),
    ],
    "install.md": [Example("pip install .", "", "--quiet --no-deps --target site")],
    "matches.md": [
        Example(
            'azero match --first "checkpoint:runs/go5?visits=64&search=engine" '
            '--second "gtp:gnugo --mode gtp --level 10 --chinese-rules --positional-superko '
            '--capture-all-dead" --second-name "GNU Go 10" --games 12 --random-plies 4 '
            "--workers 2 --out matches/go5-gnugo10",
            r"Elo difference|no interval",
            "--games 2",
        ),
        Example('azero elo matches --anchor "GNU Go 10=0" --plot elo.png', r"GNU Go 10\W+0 "),
        Example("azero analyze matches/go5-gnugo10/game0001.sgf go5 --visits 64", r"\.html"),
    ],
    "reliability.md": [
        Example(
            "timeout --signal KILL 20 python -m azero.experiments.tictactoe --workdir runs/killed",
            "preparing the run",
        ),
        Example("python -m azero.experiments.tictactoe --workdir runs/killed", "finished: "),
        Example("azero checkpoint runs/killed", "digest"),
    ],
    "resuming.md": [Example("azero checkpoint runs/go5", "digest")],
    "scaling.md": [
        Example(
            "JAX_NUM_CPU_DEVICES=8 python -m azero.experiments.tictactoe "
            "--workdir runs/eight-devices",
            r"8 x cpu[\s\S]+finished: 2 iterations",
            SMOKE,
        )
    ],
    "speed.md": [
        Example(
            "azero bench engine --stand-in --overlaps --batches 256 --visits 50000",
            "visits/s",
            "--size 9 --visits 2000",
        )
    ],
    "speed-changes.md": [
        Example(
            "azero bench search --against none --game chess --network 4x48 --edge-width 64 "
            "--batch 128 --num-simulations 16 --searches gumbel",
            "sims/s",
            "--game tictactoe --network stand-in --batch 8 --repeats 1",
        )
    ],
    "testing.md": [Example(".venv/bin/pytest tests/match/test_elo.py", r"\d+ passed")],
    "training.md": [
        Example("azero report runs/go5 --out go5.html", r"go5\.html"),
        Example("azero report runs/go5 --plot curves.png", r"curves\.png"),
    ],
    "training-efficiently.md": [
        Example(
            "python -m azero.experiments.go9_efficient --workdir runs/go9e",
            "finished: 1 iteration",
            "--network.blocks 1 --network.filters 16 --selfplay.num-games 16 "
            "--search.num-simulations 2 --search.max-considered 2 --replay.min-positions 16 "
            "--learner.batch-size 16 --learner.steps-per-iteration 2 --evaluation.every 0 "
            "--evaluation.games 0 --run.iterations 1",
        )
    ],
    "tuning.md": [
        Example(
            'azero tune "go9?visits=64&search=engine" --parameter pb-c-init=0.3..4:log '
            "first-play-reduction=0..0.8 variance-scale=0..1 --trials 30 --games 40 "
            "--out runs/tuning",
            "confirm",
            "--trials 2 --first-trials 2 --games 2 --confirm-games 2",
            needs="sklearn",
        )
    ],
    "web.md": [Example("azero web go9", r"http://127\.0\.0\.1:\d+", "--no-browser")],
}
LONG_PYTHON = ("search.md",)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the commands of the pages name."""
    place = tmp_path_factory.mktemp("place")
    for path in ROOT.iterdir():
        if path.name not in (".git", ".venv", "runs"):
            (place / path.name).symlink_to(path)
    (place / ".venv").symlink_to(sys.prefix)
    (place / "games").mkdir()
    with gzip.open(ROOT / "tests/games/go/data/games.sgf.gz", "rt") as games:
        records = games.read().replace("(;GM[1]", "(;GM[1]BR[9d]WR[9d]")
    (place / "games" / "records.sgf").write_text(records)
    with gzip.open(place / "more.sgf.gz", "wt") as more:
        more.write(records)
    with zipfile.ZipFile(place / "archive.zip", "w") as archive:
        archive.write(ROOT / "tests/data/records/expert9.sgf", "expert9.sgf")
    return place


@pytest.fixture(scope="module")
def place_with_a_run(place: Path) -> Path:
    """The same with runs/go5."""
    command = "python -m azero.experiments.go5 --workdir runs/go5"
    run("training.md", Example(command, "finished: 2 iterations", SMOKE), place)
    return place


def run(page: str, example: Example, place: Path) -> None:
    """Run a command of a page in a shell, as a reader would."""
    text = " ".join((DOCS / page).read_text().replace("\\\n", " ").split())
    assert " ".join(example.command.split()) in text, f"{page} does not show {example.command}"
    if example.needs:
        require_module(example.needs)
    is_server = example.command.startswith("azero web")
    limit = "timeout --signal INT 30 " if is_server else ""
    done = subprocess.run(
        ["bash", "-c", f"{limit}{example.command} {example.smaller}"],
        input=example.stdin,
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        timeout=900,
    )
    written = done.stdout + done.stderr
    assert re.search(example.output, written), f"{page}: {example.command}\n{written}"
    is_stopped = is_server or "--signal KILL" in example.command
    assert is_stopped or done.returncode == 0, f"{page}: {example.command}\n{written}"


@pytest.mark.parametrize("page", QUICK)
def test_the_quick_commands_of_a_page_run(page: str, place: Path) -> None:
    for example in QUICK[page]:
        run(page, example, place)


@pytest.mark.slow
@pytest.mark.parametrize("page", LONG)
def test_the_commands_of_a_page_run(page: str, place_with_a_run: Path) -> None:
    for example in LONG[page]:
        run(page, example, place_with_a_run)


def pages_with_python() -> list[str]:
    return [
        path.name
        for path in sorted(DOCS.glob("*.md"))
        if path.name not in ELSEWHERE and PYTHON_BLOCK.search(path.read_text())
    ]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page in LONG_PYTHON else ())
        for page in pages_with_python()
    ],
)
def test_the_python_of_a_page_runs(page: str) -> None:
    scope: dict[str, object] = {}
    for code in PYTHON_BLOCK.findall((DOCS / page).read_text()):
        exec(compile(code, page, "exec"), scope)


def test_every_page_has_an_example_that_runs() -> None:
    for name, module in ELSEWHERE.items():
        assert name in (ROOT / module).read_text(), f"{module} does not name {name}"
    run_here = {*QUICK, *LONG, *ELSEWHERE, *pages_with_python(), "first-network.md"}
    pages = {path.name for path in DOCS.glob("*.md")} | {"README.md"}
    assert pages == run_here


def test_the_checkpoint_of_the_first_networks_match_is_kept_whenever_the_run_was_stopped() -> None:
    (iteration,) = re.findall(r"iteration=(\d+)", (DOCS / "first-network.md").read_text())
    assert int(iteration) % (load("tictactoe").config.checkpoint.keep_every or 61) == 0


@pytest.mark.slow
def test_the_first_network_is_trained_word_by_word(tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```\n(.*?)^```", (DOCS / "first-network.md").read_text(), re.MULTILINE | re.DOTALL
    )
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) >= 8
    outputs = {"azero match": r"\b40 games|draws", "azero web": r"http://127\.0\.0\.1:"}
    for line in lines:
        output = next((text for start, text in outputs.items() if line.startswith(start)), "")
        smaller = "--no-browser" if line.startswith("azero web") else ""
        run("first-network.md", Example(line, output, smaller, stdin="quit\n"), tmp_path)
    assert "Matches with other players" in (tmp_path / "tictactoe.html").read_text()
    assert (tmp_path / "tictactoe-network" / "network.azero").stat().st_size < 100_000
