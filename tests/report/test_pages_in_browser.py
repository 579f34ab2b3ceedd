"""The pages of a run and of a review in Chromium, on a desk and on a telephone: nothing is cut,
nothing is wider than the screen, the console has no errors."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from web_browser import chromium

from azero.evaluate.recorded import recorded_game
from azero.evaluate.review import Review, ReviewedMove
from azero.games.chess import pgn
from azero.games.go.sgf import GameRecord
from azero.games.position import Position
from azero.games.table import make
from azero.report.page import write_report
from azero.report.review_page import write_review

RUN = Path(__file__).parents[2] / "experiments" / "go9-cpu"
LONG = "checkpoint:experiments/go9-cpu?iteration=200&visits=400&search=engine"
CUT_TEXTS = """() => [...document.querySelectorAll("figure, .card")].flatMap(box => {
  const frame = box.getBoundingClientRect();
  return [...box.querySelectorAll("svg.chart text, figcaption, h3, td, dd")].filter(text => {
    const range = document.createRange();
    range.selectNodeContents(text);
    const place = range.getBoundingClientRect();
    const scrolls = text.closest(".scroll");
    return place.width > 0 && !scrolls && (place.left < frame.left || place.right > frame.right + 1);
  }).map(text => text.textContent);
})"""
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run") / "go9-cpu"
    shutil.copytree(RUN, run, ignore=shutil.ignore_patterns("checkpoints"))
    return write_report(run)


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Path:
    start = Position.start(make("go", size=9))
    moves = tuple(
        ReviewedMove(
            start, number, (number + 1) % 2, number, "E5", 0.9, -0.9, number + 9,
            (number + 9, 80, 79), ("D4", "J1", "H1"), 400, 0.1, 20.5 - number,
        )
        for number in range(1, 40)
    )  # fmt: skip
    played = tuple((move.colour, move.action) for move in moves)
    record = GameRecord("game.sgf", (9, 9), 7.0, played, players=(LONG, "Bob"))
    reviewed = Review(recorded_game(record, start.game), moves, start, 1.0, None, "")
    path = tmp_path_factory.mktemp("review") / "review.html"
    write_review(path, reviewed, LONG, "a remark")
    return path


@pytest.fixture(scope="module")
def chess_review(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (record,) = pgn.parse_games(f'[White "{LONG}"]\n1. e4 e5 2. Qh5 Nf6 3. Qxe5+ *', "game.pgn")
    game = recorded_game(record, make("chess"))
    position, moves = game.start, []
    for number, (colour, action) in enumerate(game.moves, 1):
        best = int(np.flatnonzero(position.legal)[0])
        names = (position.action_name(best), *["Nb1xc3+"] * 7)
        moves.append(
            ReviewedMove(
                position, number, colour, action, position.action_name(action), 0.9, -0.9, best,
                (best,), names, 400, 0.1, None,
            )
        )  # fmt: skip
        position = position.play(action)
    path = tmp_path_factory.mktemp("chess") / "review.html"
    write_review(path, Review(game, tuple(moves), position, 1.0, None, ""), LONG, "a remark")
    return path


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["report", "review", "chess_review"])
def test_nothing_is_cut(name: str, width: int, browser, request: pytest.FixtureRequest) -> None:
    page = browser.new_page(viewport={"width": width, "height": 850})
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(request.getfixturevalue(name).as_uri())
    for details in page.locator("details > summary").all():
        details.click()
    assert page.evaluate(TOO_WIDE) <= 0
    assert page.evaluate(CUT_TEXTS) == []
    assert errors == []
    page.add_style_tag(content="figcaption, td, dd, h1 { white-space: nowrap !important }")
    assert page.evaluate(CUT_TEXTS) or page.evaluate(TOO_WIDE) > 0, "a text that is cut is found"
    if name == "report":
        assert page.locator("figcaption:text-is('Seconds per iteration')").is_visible()
        assert page.locator("td:text-is('GNU Go 10')").is_visible()
        labels = "getComputedStyle(document.querySelector('.stacked td'), '::before').content"
        assert (page.evaluate(labels) != "none") == (width == 390), "labels replace the head"
    else:
        assert LONG in page.inner_text("h1")
        mistakes = page.locator("text=loses 90.0%").count()
        assert mistakes == (5 if name == "chess_review" else 12)
    page.close()
