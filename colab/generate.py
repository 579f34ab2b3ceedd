"""Write the notebooks from their sources: `python colab/generate.py`, or `make notebooks`."""

from pathlib import Path

import jupytext
import nbformat

FOLDER = Path(__file__).parent
SOURCES = sorted(FOLDER.glob("azero_*.py"))


def generate(source: Path) -> str:
    """Return the notebook of `source` as text: the same one every time, without outputs."""
    notebook = jupytext.read(source)
    notebook.metadata.pop("jupytext", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def main() -> None:
    for source in SOURCES:
        source.with_suffix(".ipynb").write_text(generate(source), encoding="utf-8")
        print(source.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()
