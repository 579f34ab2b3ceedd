"""The files around the code: what they name exists."""

import re
import tomllib
from pathlib import Path

import yaml

import azero

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == azero.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert f"\n## {azero.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_continuous_integration_runs_what_developers_run():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.M))
    pythons = re.search(r"^PYTHONS \?= (.*)$", makefile, re.M)[1].replace("python", "").split()
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    used = set()
    for job in jobs.values():
        assert job["timeout-minutes"] <= 360
        if "strategy" in job:
            assert job["strategy"]["matrix"]["python"] == pythons
        for step in job["steps"]:
            used |= set(re.findall(r"\bmake ([\w-]+)", step.get("run", "")))
    assert used == {"test", "wheel", "site", "nightly"} and used <= targets


def test_issue_forms_ask_for_commands_that_exist():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text())
    labels = [part["attributes"]["label"] for part in form["body"]]
    assert "azero doctor --no-compile" in labels


def test_the_images_install_what_the_project_has():
    extras = PROJECT["project"]["optional-dependencies"]
    ignored = (ROOT / ".dockerignore").read_text().split()
    images = sorted((ROOT / "docker").glob("*.Dockerfile"))
    assert [image.name for image in images] == ["cpu.Dockerfile", "cuda.Dockerfile"]
    for image in images:
        text = image.read_text()
        lines = [line.split()[0] for line in text.splitlines() if line and line[0].isalpha()]
        assert lines[0] == "FROM" and lines[-2:] == ["ENTRYPOINT", "CMD"]
        version = re.search(r"^FROM python:(3\.\d+)-slim$", text, re.M)[1]
        assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]
        assert set(re.findall(r"/src\[(\w+)\]", text)) <= set(extras)
        assert "/src/constraints.txt" in text and not {"constraints.txt", "configs"} & set(ignored)
        assert 'ENTRYPOINT ["azero"]' in text and "azero" in PROJECT["project"]["scripts"]
        assert f"--file docker/{image.name}" in (ROOT / "docs" / "install.md").read_text()
