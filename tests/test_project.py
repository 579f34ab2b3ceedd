"""The files around the code: what they name exists."""

import contextlib
import importlib.metadata
import json
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import azero

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == azero.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert f"\n## {azero.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_players_of_stored_matches_are_found_from_their_directories():
    """Paths that lead out of the repository name another machine's directories."""
    records = list((ROOT / "experiments").rglob("match.json"))
    assert records
    for record in records:
        for side in json.loads(record.read_text())["players"]:
            for path in re.findall(r"\.\./[^?:&]+", side.get("from_here", "")):
                assert (record.parent / path).exists(), f"{record}: {path}"


def test_continuous_integration_runs_what_developers_run():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([\w-]+):", makefile, re.M))
    pythons = re.search(r"^PYTHONS \?= (.*)$", makefile, re.M)[1].replace("python", "").split()
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    programs = re.search(r"^for program in (.*);", (ROOT / ".ci/run").read_text(), re.M)[1]
    opponents = set(programs.replace("leelaz", "leela-zero").split())
    assert "make test MARKS='not slow'" in (ROOT / ".ci/run").read_text()
    assert "make test MARKS='not slow'" in str([job["steps"] for job in jobs.values()])
    used = set()
    for job in jobs.values():
        assert job["timeout-minutes"] <= 360
        if "strategy" in job:
            assert job["strategy"]["matrix"]["python"] == pythons
        for step in job["steps"]:
            used |= set(re.findall(r"\bmake ([\w-]+)", step.get("run", "")))
            if "apt-get" in step.get("run", ""):
                # The machines of GitHub have a browser.
                assert {*step["run"].split(), "chromium"} >= opponents
    assert used == {"test", "wheel", "site", "nightly"} and used <= targets


def test_long_tests_exist():
    functions = defaultdict(set)
    for name in (ROOT / "tests/long.txt").read_text().splitlines():
        file, _, function = name.partition("::")
        functions[file] |= {function.partition("[")[0].rpartition("::")[2]} - {""}
    assert functions
    for file, names in functions.items():
        defined = set(re.findall(r"def (test_\w+)", (ROOT / "tests" / file).read_text()))
        assert names <= defined, file


@pytest.mark.parametrize("python", re.findall(r":: (3\.\d+)", str(PROJECT["project"])))
def test_the_pinned_versions_fit_together_on_every_python(python):
    """cshogi wanted NumPy 1.26 on Python 3.12, so that the tests could not be installed there."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    versions = dict(line.split("==") for line in lines)
    pinned = {canonicalize_name(name): version for name, version in versions.items()}
    extras = PROJECT["project"]["optional-dependencies"]
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    dependencies = PROJECT["project"]["dependencies"] + ["azero[test]"]
    waiting = [("azero", "", line) for line in dependencies]
    seen_extras, problems = defaultdict(set), []
    while waiting:
        wanted_by, extra, line = waiting.pop()
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({**environment, "extra": extra}):
            continue
        name = canonicalize_name(wanted.name)
        if name == "azero":
            waiting += [(name, own, line) for own in wanted.extras for line in extras[own]]
            continue
        if not wanted.specifier.contains(pinned.get(name, "0"), prereleases=True):
            problems.append(f"{wanted_by} wants {wanted}, pinned: {pinned.get(name)}")
        # A package that only another Python needs is not installed here.
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            for own in {"", *wanted.extras} - seen_extras[name]:
                seen_extras[name].add(own)
                waiting += [(name, own, need) for need in importlib.metadata.requires(name) or []]
    assert not problems


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("optax", "0.2.6"),  # Muon has no consistent_rms
        ("onnxruntime", "1.18.1"),  # built for NumPy 1
        ("wandb", "0.17.1"),  # uses a name that NumPy 2 has not
    ],
)
def test_a_version_that_does_not_work_is_not_declared_enough(package, version):
    project = PROJECT["project"]
    lines = sum(project["optional-dependencies"].values(), project["dependencies"])
    wanted = [need for line in lines if (need := Requirement(line)).name == package]
    assert wanted and not any(need.specifier.contains(version) for need in wanted)


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
        # In the volume, not in the container, which --rm removes.
        assert "XDG_CACHE_HOME=/runs/.cache NUMBA_CACHE_DIR=/runs/.cache/" in text
        assert 'ENTRYPOINT ["azero"]' in text and "azero" in PROJECT["project"]["scripts"]
        assert f"--file docker/{image.name}" in (ROOT / "docs" / "install.md").read_text()
