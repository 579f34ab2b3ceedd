"""A real browser on the page of the web server, and what a person does there."""

import contextlib
import random
import shutil

import pytest
from needs import require_module

FLAGS = (
    "--no-sandbox",  # Chromium refuses to start as root with it
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 90_000
"""The first search compiles."""


@contextlib.contextmanager
def chromium():
    """Start the Chromium of this machine; without it the test is skipped."""
    playwright = require_module("playwright.sync_api")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Person:
    """Somebody at the page. `problems` are the errors of its console and of its requests."""

    def __init__(self, page, url: str, seed: int = 0) -> None:
        self.page, self.problems, self.random = page, [], random.Random(seed)
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(url)
        self.wait_until("ready")

    def wait_until(self, state: str) -> None:
        self.page.wait_for_selector(f"#status[data-state={state}]")

    def new_game(self, network: str, human: str = "0", visits: int = 20, **choices: str) -> None:
        page = self.page
        page.click("#new")
        page.select_option("[name=network]", network)
        for name, value in choices.items():
            page.select_option(f"dialog [name={name}]", value)
        page.check(f"[name=human][value='{human}']", force=True)
        page.fill("[name=amount]", str(visits))
        page.click("#new-dialog button.primary")
        page.wait_for_selector("#new-dialog", state="hidden")
        page.wait_for_selector("#board:not([data-turn=busy])")

    @property
    def message(self) -> str:
        return self.page.inner_text("#message")

    @property
    def is_over(self) -> bool:
        return self.page.locator("#message.result").count() > 0

    def wait_for_turn(self) -> None:
        """Wait until the person may move, or the game is over."""
        self.page.wait_for_selector("#board:is([data-turn=yours], [data-turn=over])")

    def click_square(self, name: str) -> None:
        self.page.click(f"#board rect[data-name='{name}']")

    def play_any_move(self) -> None:
        """Click a move: a point, or a piece and one of the squares it can go to."""
        page = self.page
        squares = page.locator("#board rect.playable")
        squares.nth(self.random.randrange(squares.count())).click()
        if not page.locator(".piece").count():
            return
        goals = page.locator("#board rect.goal")
        tries = 0
        while not goals.count():  # an empty square that others can go to, or the opponent's piece
            tries += 1
            assert tries < 200
            hand = page.locator(".hand button:not(:disabled)")
            if hand.count() and tries % 3 == 0:
                hand.first.click()
            else:
                squares.nth(self.random.randrange(squares.count())).click()
        goals.nth(self.random.randrange(goals.count())).click()
        if page.locator("#promotion-dialog[open]").count():
            page.locator("#promotion-dialog button").first.click()
