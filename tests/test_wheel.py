"""The package as it is published: built, installed apart from the checkout, and used from another
directory."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from azero import __version__
from azero.models.registry import MOST_BYTES, list_names

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(directory)]
    subprocess.run([*command, str(ROOT)], check=True)
    (path,) = directory.glob("azero-*.whl")
    return path


@pytest.fixture(scope="module")
def azero(wheel, tmp_path_factory):
    """Run `azero` of the wheel, with the packages that are installed here, in an empty directory."""
    root = tmp_path_factory.mktemp("bare")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / "site")
    (root / "empty").mkdir()

    def run(*words: str, text: str = "", status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "azero", *words],
            input=text,
            capture_output=True,
            text=True,
            cwd=root / "empty",
            env={**os.environ, "PYTHONPATH": str(root / "site")},
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    return run


def test_the_wheel_has_all_that_is_not_code(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"azero/models/networks/{name}/network.azero" for name in list_names()} <= names
    assert {f"azero/configs/{path.name}" for path in (ROOT / "configs").glob("*.toml")} <= names
    assert {
        "azero/py.typed",
        "azero/report/page.html.j2",
        "azero/engines/web/static/main.js",
    } <= names
    assert not [name for name in names if name.startswith(("tests", "experiments", "docs"))]
    assert wheel.name == f"azero-{__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < MOST_BYTES + 3_000_000


def test_it_works_from_any_directory(azero):
    assert all(name in azero("models") for name in list_names())
    assert "site/azero/models/networks" in azero("models").replace("\n", "")
    assert f"azero {__version__}" in azero("--version")
    assert "play" in azero("--help")


def test_it_plays_from_any_directory(azero):
    said = azero("gtp", "go5", "--visits", "8", text="version\nkomi 3.5\ngenmove b\nquit\n")
    assert f"= {__version__}" in said and "= C" in said
    said = azero("play", "tictactoe", "--visits", "20", text="b2\nquit\n")
    assert "X" in said and "O" in said


def test_it_learns_from_any_directory(azero):
    small = ["--selfplay.num-games", "8", "--replay.min-positions", "16", "--run.iterations", "1"]
    said = azero("train", "tictactoe", "--workdir", "run", *small)
    assert "finished: 1 iteration," in said
    assert "own games" in azero("train", "go5", "--config", "cpu", "--data", "x", status=2)
    assert "cannot read the overlay nothing" in azero(
        "train", "go5", "--config", "nothing", status=2
    )
