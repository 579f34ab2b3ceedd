"""The Python interface: what `azero` exports."""

import ast
import json
import math
import pickle
import subprocess
import sys
import threading
import typing
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import azero
from azero.experiment import load as load_experiment
from azero.players.thinking import Limits
from azero.players.tree_player import TreePlayer

ROOT = Path(__file__).parents[1]
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"


@pytest.fixture(scope="module")
def animal():
    return azero.load("animal-shogi")


@pytest.fixture(scope="module")
def go7():
    return azero.load("go7")


def run(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_importing_azero_loads_nothing_heavy():
    program = """
import sys
import azero
print([name for name in ("jax", "numpy", "flax", "tyro", "rich") if name in sys.modules])
print(set(azero.__all__) <= set(dir(azero)), azero.list_models()[:1], "jax" in sys.modules)
"""
    assert run(program).splitlines() == ["[]", "True ['animal-shogi'] False"]


def test_all_that_is_exported_is_there_and_documented():
    for name in azero.__all__:
        value = getattr(azero, name)
        assert value.__doc__ and value.__module__.startswith("azero."), name
    with pytest.raises(AttributeError, match="module 'azero' has no attribute 'lod'"):
        azero.lod  # noqa: B018
    assert (ROOT / "azero" / "py.typed").exists()


def test_type_checkers_see_the_interface():
    """What is imported for type checkers is what is imported when it is used."""
    tree = ast.parse(Path(azero.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname or alias.name: f"{statement.module}:{alias.name}"
        for statement in block.body
        for alias in statement.names
    }
    assert seen == azero._PLACES and sorted(seen) == sorted(azero.__all__)


def test_a_network_says_what_it_knows(go7):
    position = azero.Position.from_moves(go7.game, "D4 C3")
    evaluation = go7.evaluate(position)
    policy, value = go7._thinker(go7.game).evaluate(position)
    assert evaluation.value == value and -1 <= value <= 1
    assert sum(evaluation.policy.values()) == pytest.approx(1, abs=1e-5)
    assert set(evaluation.policy) == set(position.legal_moves()) and "D4" not in evaluation.policy
    assert list(evaluation.policy.values()) == sorted(evaluation.policy.values(), reverse=True)
    assert evaluation.policy["E5"] == policy[position.parse_action("E5")]
    assert evaluation.ownership.shape == (7, 7) and np.abs(evaluation.ownership).max() <= 1
    assert evaluation.lead_stdev > 0
    both = go7.evaluate([position, position.play("pass")])
    assert both[0].policy == evaluation.policy and both[1].lead != evaluation.lead


def test_another_komi_changes_the_lead_by_its_points(go7):
    much, little = (
        go7.evaluate(azero.Position.start(azero.make("go", size=7, komi=komi))).lead
        for komi in (9.5, 8.5)
    )
    assert little - much > 0.5, "Black, to move, has a point more"


def test_a_finished_game_has_its_result():
    model = azero.load("tictactoe")
    end = azero.Position.from_moves(model.game, "a1 b1 a2 b2 a3")
    assert (
        end.is_over
        and end.legal_moves() == []
        and str(end).endswith("the game is over: X wins (three in a row)")
    )
    assert model.evaluate(end) == azero.Evaluation({}, -1.0), "O, to move, has lost"
    result = model.search(end, visits=5)
    assert result.moves == () and result.value == -1.0
    with pytest.raises(ValueError, match="there is no best move: the game is over"):
        _ = result.best
    with pytest.raises(ValueError, match="'c3' cannot be played: the game is over"):
        end.play("c3")


def test_a_search_names_its_moves_and_lines(animal):
    position, seen = azero.Position.start(animal.game), []
    result = animal.search(position, visits=64, on_progress=seen.append)
    assert result.best == result.moves[0].move and result.visits >= 64
    assert sum(found.visits for found in result.moves) == result.visits
    assert seen[-1].moves == result.moves
    for found in result.moves:
        assert found.line[0] == found.move
        position.play_moves(found.line)
    assert sum(found.prior for found in result.moves) <= 1 + 1e-5
    assert str(result).splitlines()[1].split()[0] == result.best
    kept = animal.search(position.play(result.best), visits=5)
    assert kept.visits > 5, "the tree below the best move is kept"
    assert animal.search(position, seconds=0.05).seconds < 5
    for number in (np.int64(5), jnp.int32(5), np.array(5)):
        assert animal.limits(number, None) == animal.limits(5, None)
    wrong = [{"visits": visits} for visits in (0, 2.5, True, np.True_, jnp.array(True))]
    for limits in (*wrong, {"seconds": -1.0}, {"seconds": math.nan}):
        with pytest.raises(ValueError, match=r"must be .*above 0"):
            animal.search(position, **limits)


def test_the_visits_of_a_name_are_the_default():
    model = azero.load("animal-shogi?visits=9")
    assert 9 <= model.search(azero.Position.start(model.game)).visits < 20
    assert model.name == "animal-shogi, 9 visits"


def test_a_network_without_a_search_plays_its_policy():
    model = azero.load("tictactoe?visits=0")
    start = azero.Position.start(model.game)
    policy = model.evaluate(start).policy
    assert model.search(start).visits == 1
    game = azero.play(model, model, visits=100)
    assert policy[game.moves[0]] == pytest.approx(max(policy.values()))
    assert game.moves == azero.play(model, model).moves, "nothing is searched or drawn"


def test_the_visits_of_a_game_count_for_every_search(monkeypatch):
    seen = set[Limits]()
    think = TreePlayer.think

    def note(self, position, limits, *options):
        seen.add(limits)
        return think(self, position, limits, *options)

    monkeypatch.setattr(TreePlayer, "think", note)
    model = azero.load("random-net:go5_gated?search=trained&visits=3&blocks=1&filters=8")
    opening = "C3 B3 C2 B2 C4 B4 C1 B1 C5 B5"
    azero.play(model, model, visits=2, seconds=9.0, timeout=60.0, opening=opening)
    assert {limits.playouts for limits in seen} == {2}, "its search counts new visits"


def test_threads_share_a_model(animal):
    start = azero.Position.start(animal.game)
    first = start.legal_moves()
    found: dict[str, azero.Evaluation] = {}

    def work(move: str) -> None:
        found[move] = animal.evaluate(start.play(move))

    threads = [threading.Thread(target=work, args=(move,)) for move in first]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {move: animal.evaluate(start.play(move)) for move in first}


def test_a_pickled_model_reads_its_network_again():
    model = azero.load("go5?visits=7")
    start = azero.Position.start(model.game)
    model.search(start, visits=3)
    copied = pickle.loads(pickle.dumps(model))
    assert (copied.name, copied.config) == (model.name, model.config)
    assert copied.evaluate(start).policy == model.evaluate(start).policy
    assert copied.search(start).visits == 7, "without the tree"


def test_two_games_at_once_do_not_wait_for_each_other():
    """Each locks both networks; the first use of a network loads it under its lock."""
    first, second = (azero.load(f"tictactoe?visits={visits}") for visits in (1, 2))
    threads = [
        threading.Thread(target=azero.play, args=players, daemon=True)
        for players in ((first, second), (second, first))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_a_search_within_a_search_is_refused(animal):
    """Both would use the one tree: the outer search went on at the root of the inner one."""
    start = azero.Position.start(animal.game)
    evaluations = []

    def look(found: azero.SearchResult) -> None:
        evaluations.append(animal.evaluate(start))
        animal.search(start.play(found.best), visits=2)

    with pytest.raises(ValueError, match="is searching; on_progress cannot search with it"):
        animal.search(start, visits=4, on_progress=look)
    assert len(evaluations) == 1
    assert animal.search(start, visits=4).visits >= 4


def test_mistakes_are_one_line(animal, go7):
    for name, message in (
        ("go98", "'go98' is not a player: there is no directory 'go98'"),
        ("gtp:gnugo", "'gtp:gnugo' is a program, not a network; play takes programs"),
        ("model:go9?visit=3", "visit=3 in 'model:go9.visit=3' is not understood"),
    ):
        with pytest.raises(ValueError, match=message):
            azero.load(name)
    with pytest.raises(
        ValueError, match="iteration 124 knows animal_shogi on 4x3 and cannot play go"
    ):
        animal.evaluate(azero.Position.start(go7.game))
    for wrong in ("abc", [5], [animal]):
        with pytest.raises(TypeError, match=r"is not an azero\.Position"):
            animal.evaluate(wrong)
    with pytest.raises(TypeError, match=r"None is not an azero\.Position"):
        animal.search(None)
    with pytest.raises(ValueError, match="'5' is not a player"):
        azero.play(animal, 5)
    no_game = r"is not a game, as azero\.make and model\.game are"
    for wrong in ("go", animal, type(go7.game)):
        with pytest.raises(TypeError, match=no_game):
            azero.Position.start(wrong)
        with pytest.raises(TypeError, match=no_game):
            azero.Position.from_fen(START, game=wrong)
    for read in (azero.Position.from_fen, azero.Position.from_sfen):
        with pytest.raises(TypeError, match="None is not a position in text"):
            read(None)
    with pytest.raises(TypeError, match="7 is not a move in text"):
        azero.Position.start(animal.game).parse_action(7)
    with pytest.raises(ValueError, match="seconds must be above 0 and finite, not nan"):
        animal.search(azero.Position.start(animal.game), seconds=float("nan"))
    with pytest.raises(ValueError, match="visits must be an integer above 0, not '10'"):
        animal.search(azero.Position.start(animal.game), visits="10")
    with pytest.raises(ValueError, match=r"'K10' is not a legal move here .move 1 of the game"):
        azero.Position.from_moves(go7.game, "K10")
    with pytest.raises(ValueError, match="'chess' is not the name of a setting"):
        azero.run_experiment("tictactoe", settings={"chess": 1})
    for wrong in ("abc", ["run.iterations"], 0):
        with pytest.raises(TypeError, match=r"settings are like \{.run\.iterations.: 20\}, not"):
            azero.run_experiment("tictactoe", settings=wrong)
    with pytest.raises(ValueError, match="'1' is not the name of a setting"):
        azero.run_experiment("tictactoe", settings={1: 2})
    with pytest.raises(TypeError, match="on_metrics is a function of a row of metrics, not 5"):
        azero.run_experiment("tictactoe", on_metrics=5)
    with pytest.raises(ValueError, match=r"workdir gs:/bucket/run: .* mount the bucket"):
        azero.run_experiment("tictactoe", "gs://bucket/run")
    with pytest.raises(ValueError, match=r"settings: .*run\.iteration.*iterations"):
        azero.run_experiment("tictactoe", settings={"run.iteration": 1})


def test_a_move_may_be_an_integer_of_numpy_or_jax():
    """The action of an argmax, on the host's rules and on compiled ones."""
    for game in (azero.make("go", size=9), azero.make("tictactoe")):
        start = azero.Position.start(game)
        for move in (np.int64(7), np.argmax(np.arange(8)), jnp.int32(7)):
            position = start.play(move)
            assert position.actions == (7,) and type(position.actions[0]) is int
            assert position.legal_moves() == start.play(7).legal_moves()
        with pytest.raises(TypeError, match="float"):
            start.play(7.0)
    assert typing.get_type_hints(azero.Position.play)["move"] == typing.SupportsIndex | str


def test_the_legal_moves_of_a_position_cannot_be_changed():
    for game in (azero.make("go", size=5), azero.make("tictactoe")):
        position = azero.Position.start(game)
        with pytest.raises(ValueError, match="read-only"):
            position.legal[0] = False


def test_the_representation_of_a_position_has_no_arrays():
    position = azero.Position.start(azero.make("go", size=5)).play("C3")
    assert "actions=(12,), to_play=1, is_over=False" in repr(position)
    assert "array" not in repr(position) and "\n" not in repr(position)


def test_positions_come_from_sgf(tmp_path):
    sgf = "(;SZ[9]KM[6.5]RU[Tromp-Taylor]AB[cc][gg]PL[W];W[ee];B[ed];W[tt])"
    position = azero.Position.from_sgf(sgf)
    assert position.side == "Black" and position.actions == (40, 31, 81)
    assert (position.game.komi, position.game.suicide) == (6.5, True)
    assert position.game.board(position.state).sum() == 2
    (tmp_path / "game.sgf").write_text(sgf)
    one = azero.Position.from_sgf(tmp_path / "game.sgf", moves=1)
    assert one.actions == (40,) and one.side == "Black" and "O" in str(one)
    with pytest.raises(ValueError, match="has 3 moves, not 4"):
        azero.Position.from_sgf(sgf, moves=4)
    with pytest.raises(ValueError, match="move 2, E5, is on an occupied point"):
        azero.Position.from_sgf("(;SZ[9];B[ee];W[ee])")
    with pytest.raises(ValueError, match="no SGF data"):
        azero.Position.from_sgf("(nothing)")


@pytest.mark.parametrize(
    ("moves", "num_stones", "side"),
    [(0, 0, "Black"), (1, 1, "Black"), (2, 2, "White"), (3, 3, "Black"), (None, 4, "White")],
)
def test_positions_between_handicap_stones_that_are_moves(moves, num_stones, side):
    position = azero.Position.from_sgf("(;SZ[9]HA[2];B[cc];B[gg];W[ee];B[ef])", moves)
    assert abs(position.game.board(position.state)).sum() == num_stones
    assert position.side == side


def test_positions_come_from_fen_and_sfen():
    chess = azero.Position.from_fen(START, "e2e4 c7c5")
    assert chess.side == "White" and "g1f3" in chess.legal_moves()
    assert "rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq" in str(chess)
    assert azero.Position.from_fen(START.rsplit(" ", 2)[0]).legal_moves() == (
        azero.Position.start(azero.make("chess")).legal_moves()
    )
    shogi = azero.make("shogi")
    assert azero.Position.from_fen(shogi.sfen, "7g7f", game=shogi).side == "White"
    with pytest.raises(ValueError, match="go has no positions in FEN"):
        azero.Position.from_fen(START, game=azero.make("go", size=5))
    with pytest.raises(ValueError, match="8/8 w"):
        azero.Position.from_fen("8/8 w - -")


def test_moves_of_chess_are_read_in_san():
    start = azero.Position.start(azero.make("chess"))
    position = start.play_moves("e4 e5 Nf3 Nc6 Bc4 Bc5 0-0 Nf6")
    assert position.actions == (start.play_moves("e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1 g8f6").actions)
    with pytest.raises(ValueError, match="'Nd5' is not a legal move in r1bqk2r"):
        position.play("Nd5")
    with pytest.raises(ValueError, match="'Rd8' is ambiguous in "):
        azero.Position.start(azero.make("chess", fen="R6R/8/8/8/8/8/8/K1k5 w - - 0 1")).play("Rd8")


def test_two_networks_play_a_game(tmp_path):
    small = azero.load("go5")
    game = azero.play(small, small, visits=4, opening="C3", komi=3.5, drawn_moves=2)
    assert game.players == ("go5", "go5 (2)") and game.moves[0] == "C3"
    assert game.winner in game.players and game.result[0] == "BW"[game.winner != "go5"]
    assert game.position.is_over and game.position.game.komi == 3.5
    with pytest.raises(ValueError, match=r"game.pgn: the format of go is .sgf, not .pgn"):
        game.save(tmp_path / "game.pgn")
    game.save(tmp_path / "game.sgf")
    assert azero.Position.from_sgf(tmp_path / "game.sgf").actions == game.position.actions
    assert str(game).startswith(f"go5 (Black) against go5 (2) (White): {game.result} after ")
    assert small._thinker(small.game).style.limits.visits != 4, "the model is as it was"
    with pytest.raises(ValueError, match="not a legal move"):
        azero.play(small, small, opening="C3 C3")
    with pytest.raises(ValueError, match="at least one player must be a network"):
        azero.play("gtp:gnugo", "gtp:gnugo")
    with pytest.raises(ValueError, match="drawn_moves is at least 0, not -1"):
        azero.play(small, small, drawn_moves=-1)
    with pytest.raises(ValueError, match="timeout is above 0 seconds, not 0"):
        azero.play(small, small, timeout=0)
    with pytest.raises(ValueError, match="iteration 100 knows go on 5x5 and cannot play go on 7"):
        azero.play("go7", small)


def test_drawn_moves_of_players_by_name_follow_the_seed():
    def moves(seed):
        game = azero.play("tictactoe", "tictactoe", visits=4, drawn_moves=6, seed=seed)
        return game.moves

    first = [moves(seed) for seed in range(4)]
    assert len(set(first)) > 1
    assert moves(3) == first[3]
    with pytest.raises(ValueError, match="seed is at least 0, not -1"):
        moves(-1)


def test_games_without_a_common_format_are_not_saved(animal, tmp_path):
    game = azero.play(animal, animal, visits=2)
    assert game.record is None and game.position.is_over
    with pytest.raises(ValueError, match="no common file format for animal_shogi"):
        game.save(tmp_path / "game")


def test_a_program_plays_a_network():
    program = f"gtp:{sys.executable} {ROOT / 'tests' / 'players' / 'scripted_go.py'} pass"
    game = azero.play("go5", program, visits=2)
    assert game.players[0] == "go5" and game.position.game.name == "go"
    with pytest.raises(ValueError, match="plays chess, not go"):
        azero.play("go5", f"uci:{sys.executable}")


def test_training_calls_back_and_continues(tmp_path):
    rows: list[dict] = []
    small = {
        "network.blocks": 1,
        "network.filters": 4,
        "selfplay.num-games": 8,
        "replay.min_positions": 16,
        "learner.steps_per_iteration": 2,
        "evaluation.games": 0,
    }

    def take(row: dict) -> None:
        rows.append(dict(row))
        row.clear()

    model = azero.run_experiment(
        "tictactoe", tmp_path, settings={**small, "run.iterations": 1}, on_metrics=take
    )
    assert [row["iteration"] for row in rows] == [1] and np.isfinite(rows[0]["loss"])
    assert model.config.network.blocks == 1 and model.config.selfplay.num_games == 8

    class StopHere(Exception):
        pass

    def stop(row: dict) -> None:
        raise StopHere(row["iteration"])

    more = {**small, "run.iterations": 2}
    with pytest.raises(StopHere, match="2"):
        azero.run_experiment("tictactoe", tmp_path, settings=more, on_metrics=stop)
    azero.run_experiment("tictactoe", tmp_path, settings=more, on_metrics=rows.append)
    written = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [row["iteration"] for row in written] == [1, 2]
    assert load_experiment("tictactoe").config.network.blocks == 2, "the experiment is unchanged"
