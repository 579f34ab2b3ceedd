"""The report page: self-contained, well formed, at any stage of a run."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from azero.commands.main import main
from azero.data.run_files import StoredGame, load_run, write_config, write_run, write_samples
from azero.match.arena import evaluation_row
from azero.match.directory import MatchDirectory
from azero.match.games import MatchGame
from azero.match.score import MatchResult, Tally
from azero.report.metrics import MetricsWriter
from azero.report.page import chart_series, opening_series, write_report
from azero.selfplay.resignation import NEVER_RESIGN
from azero.settings import Config

VOID = {"meta", "input", "br", "hr", "img", "link"}


class _Checker(HTMLParser):
    """Collects unbalanced tags, outside references, and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.text = ""
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            outside = name in ("src", "href", "xlink:href", "action", "srcset") and not (
                value or ""
            ).startswith("#")
            if (
                outside
                or re.search(r"url\((?!#)", value or "")
                or ("http" in (value or "") and not name.startswith("xmlns"))
            ):
                self.problems.append(f"<{tag} {name}={value}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.text += data


def _check(path: Path) -> tuple[str, _Checker]:
    page = path.read_text(encoding="utf-8")
    checker = _Checker()
    checker.feed(page)
    checker.close()
    assert checker.problems == [] and checker.open == []
    assert "@import" not in page and not re.search(r"url\(\s*[\"']?http", page)
    return page, checker


def _row(iteration: int) -> dict[str, float]:
    row = {
        "games": 100 * iteration,
        "positions": 3000 * iteration,
        "seconds": 2.0,
        "policy_loss": 3 / iteration,
        "value_loss": 1 / iteration,
        "odd_number": 7,
    }
    return {"iteration": iteration, "positions_per_second": 940.0, **row}


def test_the_most_common_openings_of_some_time_are_lines():
    """Sixty iterations make thirty points; "never first" is less common than others at any time."""
    rows = [
        {
            "iteration": number,
            "openings": {"early": 0.6, "never first": 0.1, **extra}
            if number <= 30
            else {"late": 0.5},
        }
        for number in range(1, 61)
        for extra in [{f"{letter}": 0.2 for letter in "abc"}]
    ]
    ((title, lines),) = opening_series([{"iteration": 0}, *rows]).items()
    assert "% of games" in title
    assert [line.label for line in lines] == ["early", "late", "a", "b", "c"]
    assert lines[0].x == list(range(2, 61, 2))
    assert lines[0].y == pytest.approx([60.0] * 15 + [0.0] * 15)
    assert lines[1].y == pytest.approx([0.0] * 15 + [50.0] * 15)
    assert opening_series([{"iteration": 1, "loss": 1.0}]) == {}


def test_numbers_of_some_iterations_are_one_line(tmp_path):
    """Evaluations are every few iterations: their points are joined, not lost."""
    rows = [{"iteration": 1}, {"iteration": 2, "top1": 0.2}, {"iteration": 4, "top1": 0.3}]
    (lines,) = chart_series(
        rows, ["Agreement with the move chosen by the search or played in the record"]
    ).values()
    assert [(line.x, line.y) for line in lines] == [([2, 4], [0.2, 0.3])]


def test_a_whole_run_is_on_the_page(tmp_path: Path) -> None:
    write_config(tmp_path, Config())
    write_run(tmp_path, "go5", Config())
    with MetricsWriter(tmp_path) as writer:
        for iteration in range(1, 6):
            writer.write({**_row(iteration), "resign_threshold": NEVER_RESIGN})
        writer.event(**evaluation_row(2, 0, MatchResult(Tally(9, 0, 1), Tally(8, 1, 1))))
        writer.event(**evaluation_row(4, 2, MatchResult(Tally(6, 0, 4), Tally(6, 0, 4)), True))
        writer.event("checkpoint", 4, path="checkpoints/4")
    games = [
        StoredGame(
            "go", (5, 5), (12, 7, 25, 25), (1.0, -1.0), "two passes", (0.1, -0.2, None, 0.3), 0.5
        ),
        StoredGame("dice", (8, 8), (100, 200), (0.0, 0.0)),
    ]
    write_samples(tmp_path, 4, games)
    assert load_run(tmp_path).samples == [(4, games)]
    page, checker = _check(write_report(tmp_path))
    for text in (
        "go5",
        "iteration 5 of 7,000",
        "Policy loss",
        "Value loss",
        "odd_number",
        "Elo of the checkpoints",
        "new best player",
        "60.0%",
        "two passes",
        "komi 0.5",
        "C3",
    ):
        assert text in checker.text, text
    assert (
        "learning_rate" in checker.text
        and "num_simulations" in checker.text
        and "500" in checker.text
    )
    # Charts: policy loss, value loss, positions/s, seconds, one other number, Elo (nobody resigned
    # yet); then a board and its values.
    assert checker.count["svg"] == 6 + 2
    steps = json.loads(re.search(r'id="games">(.*?)</script>', page, re.S).group(1))  # type: ignore[union-attr]
    assert steps[0]["boards"][2] == "." * 7 + "O" + "." * 4 + "X" + "." * 12 and steps[0][
        "values"
    ] == [0.1, 0.2, None, -0.3]
    assert steps[1]["boards"] == []


@pytest.mark.parametrize("rows", [0, 1])
def test_almost_nothing_is_enough(tmp_path: Path, rows: int) -> None:
    with pytest.raises(ValueError, match="there is no run in"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []
    if rows:
        with MetricsWriter(tmp_path) as writer:
            writer.write({"iteration": 1})
    else:
        write_config(tmp_path, Config())
    _, checker = _check(write_report(tmp_path))
    assert ("iteration 1" if rows else "nothing has been logged yet") in checker.text
    assert tmp_path.name in checker.text


def test_texts_are_escaped(tmp_path: Path) -> None:
    write_run(tmp_path, "<script>alert(1)</script>", Config())
    write_samples(
        tmp_path,
        1,
        [StoredGame("go", (3, 3), (4,), (1.0, -1.0), "</script><b>", (), None, ("<i>", "x"))],
    )
    page, _ = _check(write_report(tmp_path))
    assert "<script>alert" not in page and "<b>," not in page and "<i>" not in page


def test_the_newest_samples_and_some_of_the_earlier_ones_are_shown(tmp_path: Path) -> None:
    for iteration in range(1, 101):
        write_samples(tmp_path, iteration, [StoredGame("go", (2, 2), (0, 3), (1.0, -1.0))] * 8)
    page, checker = _check(write_report(tmp_path))
    shown = [int(number) for number in re.findall(r"<h3>Iteration (\d+)", page)]
    assert shown[:7] == [100] * 6 + [99] and 9 <= len(shown) <= 12 and shown[-1] < 30
    assert checker.count["article"] == len(shown)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no working directory .*nowhere"):
        write_report(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is not valid JSON"):
        write_report(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "3.json").write_text('[{"game": "go"}]')
    with pytest.raises(ValueError, match=r"3\.json does not hold sample games"):
        write_report(tmp_path)


def play_match(directory: Path, first: str, second: str, rewards: list[float]) -> None:
    """Store a match with a program, whose name is that of the second player."""
    command = {"games": len(rewards), "first_side": None}
    named = {first: f"{first}?visits=8", second: "gtp:x"}
    players = [{"name": name, "player": text, "iteration": None} for name, text in named.items()]
    match = MatchDirectory(directory, command, players)
    for number, reward in enumerate(rewards, start=1):
        match.add(MatchGame(number, None, number % 2 == 1, reward, (number,), 0, "resign"), None)
    match.close()


def test_matches_with_other_players_are_shown_with_losses(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        writer.write(_row(1))
        writer.event(**evaluation_row(2, 0, MatchResult(Tally(9, 0, 1), Tally(8, 1, 1))))
    play_match(tmp_path / "gnugo", "go5", "GNU <Go>", [-1.0, -1.0, 0.0, 1.0])
    play_match(tmp_path / "matches" / "pachi", "go5", "Pachi", [])
    page, checker = _check(write_report(tmp_path, tmp_path / "pages" / "here.html"))
    assert not (tmp_path / "report.html").exists()
    row = re.search(r"<td data-label=\"against\">GNU &lt;Go&gt;</td>(.*?)</tr>", page, re.S)
    assert row is not None
    cells = re.findall(r'data-label="(\w+|95% interval)">(.*?)</td>', row[1])
    assert cells == [
        ("wins", "1"),
        ("draws", "1"),
        ("losses", "2"),
        ("score", "37.5%"),
        ("95% interval", "0.3 to 99.3%"),  # of two pairs
    ]
    assert "go5 against GNU <Go> (95%: 0.3 to 99.3%)" in checker.text, "the tile"
    assert re.search(r"Elo since the start \(95%: \+\d+ to \+\d+\)", checker.text)
    assert "Pachi" not in page, "no game has ended"
    (tmp_path / "gnugo" / "match.json").write_text("[]")
    with pytest.raises(ValueError, match=r"gnugo/match\.json does not hold a match"):
        write_report(tmp_path)


def test_a_slow_first_iteration_does_not_set_the_scale(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        for iteration in range(1, 30):
            writer.write({**_row(iteration), "seconds": 300.0 if iteration == 1 else 2.0})
    page, _ = _check(write_report(tmp_path))
    chart = page.split("<figcaption>Seconds per iteration</figcaption>")[1].split("</figure>")[0]
    assert "iteration (outside: up to 300, iteration 1)" in chart
    ticks = [float(text) for text in re.findall(r"<text[^>]*>([\d.]+)</text>", chart)]
    assert max(ticks) in range(20, 31), "the iterations' numbers; the seconds end at 4"
    assert "iteration (outside" not in page.replace(chart, "")


def test_the_command_writes_where_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, stages = tmp_path / "run", tmp_path / "stages"
    with MetricsWriter(run) as writer:
        writer.write(_row(1))
    facts = {"title": "One", "finished": 0, "seconds": 1, "devices": "", "processor": ""}
    stages.joinpath("one").mkdir(parents=True)
    stages.joinpath("one", "report.html").touch()
    stages.joinpath("stages.json").write_text(
        json.dumps({"one": {**facts, "commit": "", "rows": [], "notes": []}})
    )

    def report(*words: object) -> str:
        monkeypatch.setattr("sys.argv", ["azero", "report", *map(str, words)])
        main()
        return capsys.readouterr().out.strip()

    assert report(run, "--out", tmp_path) == str(tmp_path / "report.html")
    assert report(stages, "--out", tmp_path / "page.html") == str(tmp_path / "page.html")
    assert 'href="stages/one/report.html"' in (tmp_path / "page.html").read_text()
    with pytest.raises(SystemExit):
        report(run, "--out", tmp_path, "--plot", tmp_path / "x.png")
    assert "--plot writes an image instead of the page" in capsys.readouterr().err
