"""The notebooks of docs/colab.md are what their sources generate, and run from the first cell to
the last: learn, show, continue, play."""

import importlib.util
import json
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

COLAB = Path(__file__).parents[2] / "colab"
SPEC = importlib.util.spec_from_file_location("colab_generate", COLAB / "generate.py")
assert SPEC and SPEC.loader
GENERATE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GENERATE)
CONTINUES = """
training = Training(EXPERIMENT, WORKDIR, *FLAGS, "--run.iterations", "3")
assert training.follow() == 0
board.points[4].click()
assert "I play" in board.messages or "I resign" in board.messages, board.messages  # a network of two iterations may think anything
"""


def test_every_notebook_is_what_its_source_generates():
    assert {path.with_suffix(".py") for path in COLAB.glob("*.ipynb")} == set(
        GENERATE.SOURCES
    ) and len(GENERATE.SOURCES) == 2
    for source in GENERATE.SOURCES:
        assert source.with_suffix(".ipynb").read_text() == GENERATE.generate(source), (
            f"{source.name} was changed: make notebooks"
        )


def install(site: Path, name: str, version: str = "1.0") -> None:
    metadata = site / f"{name}-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True, exist_ok=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture(params=GENERATE.SOURCES, ids=lambda path: path.stem)
def installation(request, tmp_path, monkeypatch) -> str:
    """The cell that installs azero, as on Colab with an uploaded clone in `tmp_path`."""
    for name in ("jax", "jaxlib", "flax", "numpy"):
        install(tmp_path / "site", name)
    (tmp_path / "azero").mkdir()
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    monkeypatch.delitem(sys.modules, "azero", raising=False)
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "site")])
    notebook = nbformat.reads(GENERATE.generate(request.param), as_version=4)
    (cell,) = (cell.source for cell in notebook.cells if "pip" in cell.source)
    return cell.replace("/content/azero", str(tmp_path / "azero"))


def test_an_uploaded_clone_is_installed(installation, tmp_path, monkeypatch):
    """Python takes the folder of the clone for a package without a file."""
    commands = []

    def run(command: list[str], check: bool) -> None:
        commands.append(command)
        install(tmp_path / "site", "azero")

    monkeypatch.setattr("subprocess.run", run)
    exec(installation, {"REPOSITORY": ""})
    assert [command[-1] for command in commands] == [f"{tmp_path / 'azero'}[notebook]"]


def test_changed_packages_stop_the_notebook(installation, tmp_path, monkeypatch):
    """The cells after it would start a run, which the restart that is asked for does not end."""

    def run(command: list[str], check: bool) -> None:
        install(tmp_path / "site", "azero")
        install(tmp_path / "site", "numpy", "2.0")

    monkeypatch.setattr("subprocess.run", run)
    with pytest.raises(SystemExit, match="Restart session"):
        exec(installation, {"REPOSITORY": ""})
    exec(installation, {"REPOSITORY": ""})


@pytest.mark.parametrize(
    "source",
    [
        # The other notebook has the same cells for learning, showing and playing.
        pytest.param(path, marks=[] if path.stem == "azero_go" else pytest.mark.slow)
        for path in GENERATE.SOURCES
    ],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs(source, tmp_path, monkeypatch):
    for name, value in {
        "AZERO_SMOKE": "1",
        "AZERO_RUNS": str(tmp_path),
        "JAX_NUM_CPU_DEVICES": "1",
        "JAX_PLATFORMS": "cpu",
    }.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.reads(GENERATE.generate(source), as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(CONTINUES))
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(COLAB)}}
    )
    client.execute()
    outputs = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    pages = [output.data.get("text/html", "") for output in outputs if "data" in output]
    assert any(
        "Policy loss" in page and "Elo of the checkpoints" in page and 'class="board"' in page
        for page in pages
    )
    assert any(
        "application/vnd.jupyter.widget-view+json" in output.data
        for output in outputs
        if "data" in output
    ), "the board to click on"
    rows = (tmp_path / "tictactoe" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["iteration"] for row in rows] == [1, 2, 3]
