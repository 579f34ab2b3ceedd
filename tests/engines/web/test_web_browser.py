"""The page in a real Chromium: whole games by clicks, a dropped record with its review, the
keyboard, a phone, several tabs."""

import re
import shutil
from pathlib import Path

import pytest
from web_browser import Person, chromium
from web_server import running

from azero.data.run_files import StoredGame, write_samples
from azero.engines.web.limits import WebLimits

ROOT = Path(__file__).parents[3]
EXPERIMENTS = ROOT / "experiments"
PLAYERS = (
    str(EXPERIMENTS / "go5-komi" / "checkpoint"),
    str(EXPERIMENTS / "minichess" / "checkpoint-96"),
    str(EXPERIMENTS / "animal-shogi" / "checkpoint-96"),
    "random-net:tictactoe?blocks=1&filters=4",
)
GO, MINICHESS, ANIMAL, TICTACTOE = "0", "1", "2", "3"
# Black passes until its stone is captured.
GAME = b"""(;GM[1]FF[4]SZ[5]KM[0.5]PB[Anna]PW[Ben]RE[B+R]
;B[cc];W[bc];B[];W[cb];B[];W[dc];B[];W[cd];B[aa];W[ee])"""
MOST_MOVES = 300


@pytest.fixture(scope="module")
def server():
    with running(PLAYERS, WebLimits(visits=400, seconds=20.0)) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def person(server, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    person = Person(context.new_page(), server.url)
    yield person
    context.close()
    assert person.problems == []


def play_to_the_end(person: Person) -> None:
    for _ in range(MOST_MOVES):
        person.wait_for_turn()
        if person.is_over:
            return
        person.play_any_move()
    pytest.fail("the game does not end")


def test_a_game_of_go_against_the_network_by_clicks(person) -> None:
    person.new_game(GO, visits=30)
    for _ in range(4):
        person.wait_for_turn()
        person.play_any_move()
    for _ in range(60):
        person.wait_for_turn()
        if person.is_over:
            break
        person.page.click("#pass")
    assert re.fullmatch(r"White wins by [\d.]+ points.*\.|.* resigns\.", person.message)
    person.page.click("#tab-moves")
    moves = person.page.locator("#moves button").all_inner_texts()
    assert moves[-2:] == ["pass", "pass"] or "resigns" in person.message
    assert person.page.inner_text("#ply") == str(len(moves))


def test_a_game_of_minichess_against_the_network_by_clicks(person) -> None:
    person.new_game(MINICHESS, visits=8)
    play_to_the_end(person)
    assert re.fullmatch(r"(White|Black) wins.*\.|The game is a draw \(.*\)\.", person.message)
    assert person.page.locator("#board .piece").count() >= 2


def test_a_game_of_animal_shogi_with_the_second_side_by_clicks(person) -> None:
    person.new_game(ANIMAL, human="1", visits=8)
    play_to_the_end(person)
    assert re.fullmatch(
        r"(First|Second) player wins.*\.|The game is a draw \(.*\)\.", person.message
    )


def test_a_game_of_tictactoe_with_both_sides_by_clicks(person) -> None:
    person.new_game(TICTACTOE, human="both")
    for square in ("a1", "b2", "a2", "c3", "a3"):
        person.wait_for_turn()
        person.click_square(square)
    person.page.wait_for_selector("#message.result")
    assert person.message == "X wins (three in a row)."
    person.page.click("#undo")
    person.wait_for_turn()
    assert person.message == "X to move."


def test_the_analysis_is_drawn_on_the_board_and_listed(person) -> None:
    page = person.page
    person.new_game(GO, human="analysis", visits=50)
    page.wait_for_selector("#board .disc")
    page.wait_for_selector("#lines tbody tr")
    assert re.fullmatch(r"\d+%", page.inner_text("#lines tbody tr:first-child td:nth-child(2)"))
    assert page.locator("#chances").is_visible()
    page.check("[name=overlay][value=policy]", force=True)
    page.wait_for_selector("#board .heat rect", state="attached")
    assert page.locator("#board .disc").count() == 0
    page.check("[name=overlay][value=owners]", force=True)
    page.wait_for_selector("#board .owner", state="attached")
    page.check("[name=overlay][value=moves]", force=True)
    page.hover("#lines tbody tr:first-child")
    page.wait_for_selector("#board .line-stone", state="attached")
    page.click("#lines tbody tr:first-child button")
    page.wait_for_selector("#ply:has-text('1')")


def drop(page, name: str, content: bytes) -> None:
    """Drop a file on the page."""
    transfer = page.evaluate_handle(
        """([name, text]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([text], name));
          return transfer;
        }""",
        [name, content.decode()],
    )
    page.dispatch_event("#board", "dragenter", {"dataTransfer": transfer})
    assert page.locator("#drop").is_visible()
    page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})


def test_a_dropped_record_is_reviewed_and_stepped_through(person) -> None:
    page = person.page
    drop(page, "anna-ben.sgf", GAME)
    page.wait_for_selector("#bottom-player:has-text('Anna')")
    assert page.inner_text("#ply") == "10"
    page.select_option("#review-visits", "30")
    page.click("#review")
    page.wait_for_selector("#mistakes li")
    page.wait_for_selector("#review:has-text('Review the game')")
    first, *others = page.locator("#mistakes .loss").all_inner_texts()
    losses = [float(text.strip("−%")) for text in (first, *others)]
    assert losses == sorted(losses, reverse=True)
    assert page.locator("#graph .rate").is_visible()
    page.locator("#mistakes button").first.click()
    number = int(page.locator("#mistakes b").first.inner_text().partition(".")[0])
    page.wait_for_selector(f"#ply:has-text('{number - 1} / 10')")
    page.wait_for_selector("#board .disc", state="attached")
    page.keyboard.press("Home")
    page.wait_for_selector("#ply:has-text('0 / 10')")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#ply:has-text('1 / 10')")
    page.keyboard.press("End")
    page.wait_for_selector("#back:enabled")
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "azero-go.sgf"
    assert b"PB[Anna]" in Path(download.value.path()).read_bytes()
    drop(page, "another.sgf", GAME)
    page.wait_for_selector("#review-hint", state="visible")
    assert not page.locator("#mistakes li").count(), "those of the game before"


def test_the_game_of_a_file_of_several_is_chosen(person) -> None:
    page = person.page
    drop(page, "both.sgf", b"(;SZ[5]KM[0.5]PB[Eve];B[cc])" + GAME)
    page.wait_for_selector("#bottom-player:has-text('Eve')")
    assert page.inner_text("#place").endswith("of 2 in the file")
    page.select_option("#place select", "2")
    page.wait_for_selector("#bottom-player:has-text('Anna')")
    page.reload()
    page.wait_for_selector("#place select:disabled")
    assert page.input_value("#place select") == "2"
    drop(page, "one.sgf", GAME)
    page.wait_for_selector("#place", state="hidden")


def test_a_drop_in_a_line_is_a_piece_of_the_side_that_drops_it(person) -> None:
    person.new_game(ANIMAL, human="both")
    sides = person.page.evaluate("""async () => {
        const { drawLine } = await import("/static/overlays.js");
        const layers = Object.fromEntries(["heat", "owners", "hints"].map((name) => [
            name, document.createElementNS("http://www.w3.org/2000/svg", "g")]));
        const game = { game: "animal_shogi", to_play: 0, cell: 30 };
        const board = { hasPieces: true, game, layers, centre: (at) => [at, at],
            squareOf: (name) => name.charCodeAt(1) };
        drawLine(board, ["C@b2", "E@b3", "G@a1"], 0);
        return [...layers.hints.querySelectorAll(".piece")].map(({ classList }) => classList[1]);
    }""")
    assert sides == ["first", "second", "first"]


def test_a_record_without_names_is_saved_without_names(person) -> None:
    page = person.page
    drop(page, "nobody.sgf", b"(;GM[1]FF[4]SZ[5]KM[0.5];B[cc];W[bc])")
    page.wait_for_selector("#ply:has-text('2')")
    with page.expect_download() as download:
        page.click("#save")
    saved = Path(download.value.path()).read_bytes()
    assert b";B[cc];W[bc]" in saved and b"PB[" not in saved and b"PW[" not in saved


def test_a_record_that_is_none_is_refused_in_words(server, browser) -> None:
    context = browser.new_context()
    person = Person(context.new_page(), server.url)
    drop(person.page, "x.sgf", b"nothing")
    person.page.wait_for_selector("#message.error")
    assert person.message == "X.sgf: no SGF data: there is no '(;' in it."
    context.close()
    assert all("400" in problem for problem in person.problems)  # the browser's own note of it


def test_the_board_is_played_with_the_keyboard(person) -> None:
    page = person.page
    person.new_game(GO, human="both")
    page.focus("#board rect[data-name='A5']")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("#board rect[aria-label='C4, black stone']", state="attached")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    page.wait_for_selector("#board rect[aria-label='C3, white stone']", state="attached")
    page.keyboard.press("u")
    page.wait_for_selector("#board rect[aria-label='C3, empty']", state="attached")


def test_on_a_phone_nothing_is_wider_than_the_screen_and_touch_plays(server, browser) -> None:
    context = browser.new_context(
        viewport={"width": 375, "height": 720}, has_touch=True, is_mobile=True, color_scheme="dark"
    )
    person = Person(context.new_page(), server.url)
    page = person.page
    person.new_game(GO, human="both")
    page.tap("#board rect[data-name='C3']")
    page.wait_for_selector("#board rect[aria-label='C3, black stone']", state="attached")
    page.tap("label.switch")
    page.wait_for_selector("#lines tbody tr")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 375
    for button in page.locator("button:visible").all():
        assert button.bounding_box()["height"] >= 26
    background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(20, 23, 26)"
    context.close()
    assert person.problems == []


def test_two_tabs_have_games_of_their_own_and_one_comes_back(server, browser) -> None:
    context = browser.new_context()
    one, two = (Person(context.new_page(), server.url) for _ in range(2))
    for person, square in ((one, "C3"), (two, "B2")):
        person.new_game(GO, human="both")
        person.click_square(square)
        person.page.wait_for_selector("#ply:has-text('1')")
    assert one.page.locator("#board rect[aria-label='B2, empty']").count() == 1
    assert two.page.locator("#board rect[aria-label='C3, empty']").count() == 1
    one.page.reload()
    one.page.wait_for_selector("#board rect[aria-label='C3, black stone']", state="attached")
    context.close()
    assert one.problems == two.problems == []


def test_a_duplicated_tab_catches_up_with_the_game_of_the_other(server, browser) -> None:
    context = browser.new_context()
    one = Person(context.new_page(), server.url)
    one.new_game(GO, human="both")
    kept = one.page.evaluate("() => sessionStorage.getItem('azero-game')")
    two = Person(context.new_page(), server.url)  # a browser copies the session of such a tab
    two.page.evaluate("(kept) => sessionStorage.setItem('azero-game', kept)", kept)
    two.page.reload()
    two.wait_for_turn()
    one.click_square("C3")
    one.page.wait_for_selector("#ply:has-text('1')")
    two.click_square("B2")
    two.page.wait_for_selector("#board rect[aria-label='C3, black stone']", state="attached")
    assert two.message == "The position has changed meanwhile."
    two.click_square("B2")
    two.page.wait_for_selector("#board rect[aria-label='B2, white stone']", state="attached")
    context.close()
    assert one.problems == []


def test_a_tab_whose_search_another_one_has_ended_says_so_and_goes_on_when_it_is_shown(
    person,
) -> None:
    page = person.page
    person.new_game(GO, visits=400)
    person.wait_for_turn()
    person.click_square("C3")
    page.wait_for_selector("#message:has-text('The network thinks')")
    page.evaluate("() => fetch('/api/games/' + JSON.parse(sessionStorage['azero-game']).id)")
    page.wait_for_selector("#message:has-text('This game continues in another tab.')")
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_selector("#ply:has-text('2')")
    assert person.message == "Your move."


def test_enter_in_the_dialog_starts_the_game(person) -> None:
    page = person.page
    page.click("#new")
    page.fill("[name=amount]", "7")
    page.press("[name=amount]", "Enter")
    page.wait_for_selector("#new-dialog", state="hidden")
    page.wait_for_function("() => JSON.parse(sessionStorage['azero-game']).setup.amount === 7")


def test_a_page_that_is_reloaded_while_the_network_thinks_gets_its_move(person) -> None:
    person.wait_until("ready")
    person.new_game(GO, visits=400)
    person.wait_for_turn()
    person.click_square("C3")
    person.page.wait_for_selector("#ply:has-text('1')")
    person.page.reload()
    person.page.wait_for_selector("#ply:has-text('2')")


def test_a_page_that_is_loaded_again_goes_on_with_the_analysis(person) -> None:
    page = person.page
    person.new_game(GO, human="analysis")
    page.wait_for_selector("#lines tr")
    page.reload()
    page.wait_for_selector("#lines tr")
    assert page.is_checked("#analyse")
    page.uncheck("#analyse", force=True)
    page.reload()
    person.wait_for_turn()
    assert not page.is_checked("#analyse")


def test_undo_takes_back_a_resignation_alone(person) -> None:
    page = person.page
    person.new_game(GO, visits=4)
    for ply in ("0", "2"):
        page.click("#resign")
        page.wait_for_selector("#board[data-turn=over]")
        assert person.message == "White wins: Black resigns."
        page.click("#undo")
        person.wait_for_turn()
        assert not person.is_over and page.inner_text("#ply") == ply
        person.play_any_move()
        page.wait_for_selector(f"#ply:has-text('{int(ply) + 2}')")
        person.wait_for_turn()


def test_the_network_s_move_alone_is_not_taken_back(person) -> None:
    person.new_game(GO, human="1", visits=4)
    person.wait_for_turn()
    assert person.page.inner_text("#ply") == "1" and person.page.is_disabled("#undo")
    person.play_any_move()
    person.page.wait_for_selector("#ply:has-text('3')")
    person.wait_for_turn()
    person.page.click("#undo")
    person.wait_for_turn()
    assert person.page.inner_text("#ply") == "1 / 3"


def test_a_review_that_is_left_or_has_no_moves_is_not_complete(person) -> None:
    page = person.page
    person.new_game(GO, human="both")
    page.click("#tab-review")
    page.click("#review")
    page.wait_for_selector("#message:has-text('There is no move to review yet.')")
    assert page.locator("#review-hint").is_visible()
    drop(page, "anna-ben.sgf", GAME)
    page.wait_for_selector("#bottom-player:has-text('Anna')")
    page.select_option("#review-visits", "1600")
    page.click("#review")
    page.wait_for_selector("#status[data-state=thinking]")
    page.click("#back")
    page.wait_for_selector("#ply:has-text('9 / 10')")
    assert page.inner_text("#review") == "Review the game"
    assert page.locator("#review-progress").is_hidden()
    assert page.locator("#review-hint").is_visible()
    person.wait_until("ready")


def test_a_new_game_that_is_refused_leaves_the_game_in_progress_alone(person) -> None:
    page = person.page
    person.new_game(MINICHESS, visits=8)
    for ply in (2, 4):
        person.wait_for_turn()
        person.play_any_move()
        page.click("#new")
        page.check("[name=human][value='1']", force=True)
        page.evaluate("() => { document.querySelector('[name=start]').value = 'nonsense'; }")
        page.click("#new-dialog button.primary")
        page.wait_for_selector("#message.error")
        page.wait_for_selector(f"#ply:has-text('{ply}')")
        page.wait_for_selector("#board[data-turn=yours]")
    page.click("#new")
    assert page.input_value("[name=start]") == "nonsense", "what was refused can be corrected"
    assert page.is_checked("[name=human][value='1']")
    page.select_option("[name=network]", TICTACTOE)  # it has no other start positions
    page.click("#new-dialog button.primary")
    page.wait_for_selector("body[data-game=tictactoe]")
    page.click("#new")
    page.select_option("[name=network]", MINICHESS)
    assert page.input_value("[name=start]") == ""
    page.click("#new-dialog button[value=cancel]")
    person.problems.clear()  # the browser's own notes of the refusals


def test_a_refused_game_is_asked_for_again_as_it_was(person) -> None:
    page, refusal = person.page, {"status": 503, "json": {"error": "too many games"}}
    person.new_game(MINICHESS, visits=8)
    page.route("**/api/games", lambda route: route.fulfill(**refusal), times=1)
    page.click("#new")
    page.select_option("[name=network]", GO)
    page.fill("[name=komi]", "3.5")
    page.click("#new-dialog button.primary")
    page.wait_for_selector("#message.error")
    page.click("#new")
    assert page.input_value("[name=komi]") == "3.5"
    page.click("#new-dialog button.primary")
    page.wait_for_selector("body[data-game=go]")
    person.problems.clear()


def test_nothing_of_a_game_can_be_pressed_before_the_first_game_is_there(server, browser) -> None:
    context = browser.new_context()
    page, held = context.new_page(), []
    page.route("**/api/games", lambda route: held.append(route), times=1)
    page.goto(server.url)
    page.wait_for_selector("#message:has-text('Preparing the rules')")
    for name in ("first", "back", "forward", "last", "undo", "pass", "resign", "save", "review"):
        assert page.locator(f"#{name}").is_disabled(), name
    page.wait_for_timeout(100)
    held[0].continue_()
    page.wait_for_selector("#board[data-turn=yours]")
    for name in ("pass", "resign", "save", "review"):
        assert page.locator(f"#{name}").is_enabled(), name
    context.close()


def test_of_two_new_games_that_are_prepared_at_once_the_later_one_is_shown(person) -> None:
    page, held = person.page, []
    page.wait_for_selector("#board[data-turn=yours]")
    page.route("**/api/games", lambda route: held.append(route), times=1)
    page.click("#new")
    page.select_option("[name=network]", MINICHESS)
    page.click("#new-dialog button.primary")
    page.wait_for_selector("#board[data-turn=busy]")
    person.new_game(TICTACTOE, human="both")
    page.wait_for_selector("body[data-game=tictactoe]")
    with page.expect_response("**/api/games"):
        held[0].continue_()
    page.wait_for_timeout(200)
    assert page.get_attribute("body", "data-game") == "tictactoe"


def lose(page, pattern: str) -> None:
    """Lose the next request that matches, as a connection that breaks does."""
    page.route(pattern, lambda route: route.abort("connectionreset"), times=1)


@pytest.mark.parametrize("request_", ["think", "goto"])
def test_the_network_answers_although_a_connection_broke_while_it_thought(person, request_) -> None:
    page = person.page
    person.new_game(GO, visits=400)
    lose(page, f"**/{request_}")
    person.click_square("C3")
    page.wait_for_selector("#ply:has-text('1')")
    if request_ == "goto":
        page.click("#undo")  # ends the search, and is lost
    page.wait_for_selector("#ply:has-text('2')")
    person.problems.clear()  # the browser's own notes of the lost requests


def test_a_page_that_is_loaded_over_a_bad_connection_finds_its_game(person) -> None:
    page = person.page
    person.new_game(GO, human="both")
    person.click_square("C3")
    page.wait_for_selector("#ply:has-text('1')")
    lose(page, "**/api/games/*")
    page.reload()
    page.wait_for_selector("#board rect[aria-label='C3, black stone']", state="attached")
    person.problems.clear()


def test_a_game_in_progress_is_found_again_after_a_new_game_that_is_not_there(person) -> None:
    page = person.page
    person.new_game(GO, human="both")
    person.click_square("C3")
    page.wait_for_selector("#ply:has-text('1')")
    refusal = {"status": 404, "json": {"error": "runs/go9 has no checkpoint 3"}}
    page.route("**/api/games", lambda route: route.fulfill(**refusal), times=1)
    page.click("#new")
    page.click("#new-dialog button.primary")
    page.wait_for_selector("#message.error")
    page.reload()
    page.wait_for_selector("#board rect[aria-label='C3, black stone']", state="attached")
    person.problems.clear()


def test_the_next_new_game_offers_the_limit_of_the_last_one(person) -> None:
    page = person.page
    person.new_game(TICTACTOE, visits=1)
    page.click("#new")
    assert page.input_value("[name=amount]") == "1"
    page.check("[name=unit][value=seconds]", force=True)
    assert page.input_value("[name=amount]") == "5"
    page.fill("[name=amount]", "20")
    page.click("#new-dialog button.primary")
    page.wait_for_selector("#new-dialog", state="hidden")
    page.click("#new")
    assert page.input_value("[name=amount]") == "20"
    page.check("[name=unit][value=visits]", force=True)
    assert page.input_value("[name=amount]") == "200"
    page.click("#new-dialog button[value=cancel]")


def test_a_game_begins_after_the_server_has_come_back_with_fewer_networks(person) -> None:
    page = person.page
    person.new_game(TICTACTOE)

    def answer(route) -> None:
        offered = route.fetch().json()
        route.fulfill(json={**offered, "networks": offered["networks"][:1]})

    page.route("**/api/server", answer)
    person.wait_until("compiling")
    page.unroute("**/api/server")
    page.click("#new")
    assert page.input_value("[name=network]") == GO
    page.click("#new-dialog button[value=cancel]")


def test_the_first_game_keeps_to_the_limit_of_visits(browser) -> None:
    with running((PLAYERS[3],), WebLimits(visits=8)) as server:
        person = Person(browser.new_page(), server.url)
        person.click_square("b2")
        person.page.wait_for_selector("#ply:has-text('2')")
        person.page.close()
        assert person.problems == []


def test_a_closed_tab_in_mid_search_leaves_the_server_to_the_others(server, browser) -> None:
    context = browser.new_context()
    one = Person(context.new_page(), server.url)
    one.new_game(GO, human="analysis")
    one.page.wait_for_selector("#board .disc")
    one.page.close()
    two = Person(context.new_page(), server.url)
    two.new_game(GO, visits=10)
    two.wait_for_turn()
    two.click_square("C3")
    two.page.wait_for_selector("#ply:has-text('2')")
    context.close()
    assert one.problems == two.problems == []


def test_the_tab_of_a_run_closes_with_a_game_of_another_network(tmp_path, browser) -> None:
    workdir = tmp_path / "go5"
    shutil.copytree(PLAYERS[0], workdir)
    (workdir / "run.json").write_text('{"experiment": "learning"}')
    (workdir / "metrics.jsonl").write_text('{"iteration": 1, "policy_loss": 3.0}\n')
    write_samples(workdir, 1, [StoredGame("go", (5, 5), (12, 7, 6), (1.0, -1.0), komi=0.5)])
    with running((str(workdir), PLAYERS[3]), WebLimits(visits=1_000_000)) as server:
        context = browser.new_context()
        person = Person(context.new_page(), server.url)
        page = person.page
        person.new_game("0", human="analysis")
        page.wait_for_selector("#lines tbody tr")
        held = []
        page.route("**/api/runs/0", lambda route: held.append(route))
        page.click("#tab-run")
        page.wait_for_timeout(500)
        page.click("#tab-analysis")
        with page.expect_response("**/api/runs/0"):
            held.pop().continue_()
        page.unroute("**/api/runs/0")
        page.wait_for_timeout(500)
        assert page.text_content("#run-title") == "", "nobody watches the run any more"
        page.click("#tab-run")
        page.wait_for_selector("#run-title:has-text('learning')")
        page.click("#run-games button")  # the search of the other game ends
        page.wait_for_selector("#ply:has-text('3')")
        page.click("#tab-analysis")
        page.wait_for_selector("#lines tbody tr", timeout=20_000)
        page.uncheck("#analyse", force=True)
        page.click("#tab-run")
        person.new_game("1")
        page.wait_for_selector("#panel-run", state="hidden")
        assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Analysis"
        context.close()
