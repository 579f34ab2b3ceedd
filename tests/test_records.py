"""The pages of `experiments/` say what the files beside them say: matches, intervals, Elo, and the
lengths of runs."""

import json
import re
from pathlib import Path

import pytest

from azero.match.elo import elo_difference

ROOT = Path(__file__).parents[1]
RECORDS = sorted((ROOT / "experiments").rglob("README.md"))


def words_of(page: Path) -> str:
    """Return the text of a page in one line, without emphasis."""
    return " ".join(page.read_text().replace("**", "").split())


def results_below(directory: Path) -> dict[str, dict]:
    """Return the results of the stored matches that have games, by their directories."""
    found = {}
    for path in sorted(directory.rglob("match.json")):
        if result := json.loads(path.read_text())["result"]:
            found[str(path.parent.relative_to(ROOT))] = result
    return found


def counts_of(result: dict) -> tuple[int, int, int]:
    return result["wins"], result["draws"], result["losses"]


COUNTS = re.compile(
    r"(?<![\d-])(?=(\d+)(?:, (\d+), (\d+)|-(\d+)-(\d+)| won, (\d+) drawn, (\d+) lost"
    r"|, drew (\d+) and lost (\d+))(?![\d-]))"
)
WITHOUT_DRAWS = re.compile(
    r"(?<![\d-])(?=(\d+)(?:-(\d+) as| won, (\d+) lost|, (\d+)(?![\d,])| of (\d+))(?![\d-]))"
)


def told_counts(text: str) -> set[tuple[int, ...]]:
    """Return the wins, draws and losses that a text has in one of the forms of the pages."""
    told = {tuple(map(int, filter(None, found.groups()))) for found in COUNTS.finditer(text)}
    for found in WITHOUT_DRAWS.finditer(text):
        won, other = map(int, filter(None, found.groups()))
        told |= {(won, 0, other - won if found[5] else other)}
    return told


def is_scored(score: float, low: float, high: float, text: str) -> bool:
    """Whether a text has this score with its interval."""
    numbers = [f"{100 * value:.1f}".replace("100.0", "100") for value in (score, low, high)]
    return "{}% ({} to {})".format(*numbers) in text


def test_every_stored_match_is_told():
    """Losses included, from either side, in all or by colour."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *RECORDS]
    text = " ".join(map(words_of, pages))
    told = told_counts(text)
    results = results_below(ROOT / "experiments")
    assert len(results) > 100
    for name, result in results.items():
        counts, (low, high) = counts_of(result), result["interval"]
        colours = [counts_of(result[f"as_{side}_mover"]) for side in ("first", "second")]
        is_told = (
            counts in told
            or counts[::-1] in told
            or told.issuperset(colours)
            or is_scored(result["score"], low, high, text)
            or is_scored(1 - result["score"], 1 - high, 1 - low, text)
        )
        assert is_told, f"no page has the result of {name}: {counts}"


INTERVAL = re.compile(
    r"(?:(\d+), (\d+), (\d+) \||(\d+) won, (\d+) drawn, (\d+) lost,) [\d.]+%"
    r" \((?:95%: )?([\d.]+) to ([\d.]+)"
    r"(?:(?:[^|%]{0,80}?, |\) \| )([+-]\d+)(?: Elo)? \(([+-]\d+) to ([+-]\d+)\))?"
)


def test_intervals_are_those_of_the_stored_matches():
    """Of a match beside the page with these wins, draws and losses; several may have them."""
    seen = 0
    for page in RECORDS:
        results = results_below(page.parent).values()
        for found in INTERVAL.finditer(words_of(page)):
            counts = tuple(int(found[i] or found[i + 3]) for i in (1, 2, 3))
            intervals = [result["interval"] for result in results if counts_of(result) == counts]
            if not intervals:  # a match that was not kept
                continue
            told = [float(found[7]) / 100, float(found[8]) / 100]
            assert any(told == pytest.approx(own, abs=6e-4) for own in intervals), found[0]
            won, drawn, _ = counts
            score = (won + drawn / 2) / sum(counts)
            if found[9]:
                elo = [float(found[i]) for i in (9, 10, 11)]
                assert any(
                    elo == pytest.approx([elo_difference(x) for x in (score, *own)], abs=0.6)
                    for own in intervals
                ), found[0]
                seen += 1
    assert seen > 20


def test_files_that_the_records_name_exist():
    for page in RECORDS:
        text = page.read_text()
        paths = set(re.findall(r"(?<![\w./-])experiments/[\w./-]*\w", text))
        assert all((ROOT / path).exists() for path in paths), f"{page}: {paths}"
        for name in re.findall(r"`(matches/[\w.-]+)(?<!\.)`|\]\(((?!https:)[^)#]+)", text):
            assert (page.parent / (name[0] or name[1])).exists(), f"{page} names {name}"


def test_the_lengths_of_runs_are_those_of_their_metrics():
    """`614,400 positions, 3,292 games, 4,512 steps` are of one run beside the page, whose metrics
    may go on from those of another."""
    seen = 0
    for page in RECORDS:
        lengths = [length_of(path) for path in sorted(page.parent.rglob("metrics.jsonl"))]
        for told in re.finditer(
            r"([\d,]+ positions(?: \([^)]*\))?), ([\d,]+) (?:finished )?games, ([\d,]+) steps",
            words_of(page),
        ):
            positions, (games,), (steps,) = map(numbers_in, told.groups())
            assert any(
                last[0] - first[0] in positions
                and (games, steps) == (last[1] - first[1], last[2] - first[2])
                for last in lengths
                for first in [(0, 0, 0), *lengths]
            ), f"{page}: {told[0]}"
            seen += 1
    assert seen > 15


def numbers_in(text: str) -> list[int]:
    """Return the whole numbers of a text, written with commas."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d|\d", text)]


def length_of(metrics: Path) -> tuple[int, int, int]:
    """Return the positions, games and steps in the last row of a run's metrics."""
    last = json.loads(metrics.read_text().splitlines()[-1])
    return last["positions"], last["games"], last["steps"]
