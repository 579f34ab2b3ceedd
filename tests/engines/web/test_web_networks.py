"""Networks that several games share: turns in order, trees of their own, memory within limits."""

import dataclasses
import itertools
import threading
import time
from pathlib import Path

import jax
import pytest
from web_server import GO5, TICTACTOE, Visitor, running

from azero.engines.web import networks
from azero.engines.web.limits import WebLimits
from azero.engines.web.networks import FairLock, GamePlayer, ServedNetwork, title
from azero.engines.web.records import read_record
from azero.engines.web.service import NewGame, Service
from azero.games.position import Position
from azero.players.specs import CheckpointSpec, parse_player, resolve
from azero.players.thinking import Limits, ThinkOptions


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def network() -> ServedNetwork:
    spec, config = resolve(parse_player(GO5))
    network = ServedNetwork(
        spec, config, config.game.build(), WebLimits(trees=2, tree_megabytes=16)
    )
    player = network.wait(never)
    while not network.is_warm(player):  # until then a tree is begun again with the larger batches
        time.sleep(0.01)
    return network


def test_an_exported_network_is_called_by_its_run() -> None:
    network = CheckpointSpec(Path("runs/go5/checkpoint"))
    assert title(network) == "go5"
    options = dataclasses.replace(network, visits=8, search="engine")
    assert title(options) == "go5, 8 visits, engine"


def test_the_lock_goes_to_threads_in_the_order_in_which_they_asked() -> None:
    lock, order = FairLock(), []
    assert lock.acquire(never) and not lock.is_wanted
    threads = []
    for number in range(5):
        thread = threading.Thread(
            target=lambda number=number: (
                lock.acquire(never),
                order.append(number),
                lock.release(),
            )
        )
        thread.start()
        threads.append(thread)
        deadline = time.monotonic() + 5
        while len(lock._queue) < number + 2 and time.monotonic() < deadline:
            time.sleep(0.001)
    assert lock.is_wanted
    assert not lock.acquire(lambda: True)
    lock.release()
    for thread in threads:
        thread.join(5)
    assert order == [0, 1, 2, 3, 4] and not lock.is_locked


def test_two_searches_share_the_network_and_both_get_on(network, monkeypatch) -> None:
    monkeypatch.setattr(networks, "SLICE_SECONDS", 0.02)
    position, found, switches = Position.start(network.game), {}, []
    players = {"one": GamePlayer(network), "two": GamePlayer(network)}

    def search(name: str) -> None:
        found[name] = players[name].think(
            position,
            Limits(visits=3_000),
            ThinkOptions(on_progress=lambda analysis: switches.append(name), progress_seconds=0.0),
        )

    threads = [threading.Thread(target=search, args=(name,)) for name in players]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for analysis in found.values():
        assert 3_000 <= analysis.visits < 3_016 and analysis.playouts == analysis.visits
    turns = sum(a != b for a, b in itertools.pairwise(switches))
    assert turns >= 4, "one search waited for the other to end"


def test_limits_of_playouts_and_seconds_hold_over_several_turns(network, monkeypatch) -> None:
    monkeypatch.setattr(networks, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(FairLock, "is_wanted", property(lambda lock: True))
    player = GamePlayer(network)
    analysis = player.think(Position.start(network.game), Limits(playouts=100))
    assert 100 <= analysis.playouts < 116
    began = time.perf_counter()
    player.think(Position.start(network.game), Limits(seconds=0.3))
    assert 0.2 < time.perf_counter() - began < 3


def test_a_search_that_waits_can_be_ended_and_gives_no_moves(network) -> None:
    assert network.search_lock.acquire(never)
    try:
        stop = time.monotonic() + 0.2
        player = GamePlayer(network)
        analysis = player.think(
            Position.start(network.game),
            Limits(),
            ThinkOptions(should_stop=lambda: time.monotonic() > stop),
        )
    finally:
        network.search_lock.release()
    assert analysis.moves == () and analysis.visits == 0
    assert not network.search_lock.is_locked


def test_a_network_unloaded_as_a_search_begins_hands_its_turn_on(network, monkeypatch) -> None:
    """The search then had no tree, and kept the turn for ever."""
    keep, player = network.keep, GamePlayer(network)
    monkeypatch.setattr(network, "keep", lambda kept: (keep(kept), kept.reset()))
    analysis = player.think(Position.start(network.game), Limits(visits=8))
    assert analysis.visits >= 8 and not network.search_lock.is_locked


def test_only_so_many_trees_are_kept(network) -> None:
    players = [GamePlayer(network) for _ in range(4)]
    for player in players:
        player.think(Position.start(network.game), Limits(visits=8))
    assert [player._own is None for player in players] == [True, True, False, False]
    assert players[0].think(Position.start(network.game), Limits(visits=8)).visits >= 8


def test_networks_beyond_the_limit_are_unloaded_and_come_back() -> None:
    other = GO5.replace("filters=4", "filters=5")
    service = Service([GO5, other], WebLimits(networks=1))
    game = service.new_game(NewGame("0"))
    first = game.network
    first.begin().finish()
    second = service.new_game(NewGame("1")).network
    assert first.state == "compiling" and first._loading is None
    second.begin().finish()
    service.use(first)
    assert second.state == "compiling" and second._loading is None
    analysis = game.session.think(game.position, Limits(visits=8))
    assert analysis.visits >= 8 and first.state == "ready"


def test_programs_of_unloaded_networks_do_not_gather(monkeypatch) -> None:
    cleared = []
    monkeypatch.setattr(ServedNetwork, "begin", lambda self: None)
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(service._num_unloaded))
    service = Service(
        [GO5.replace("filters=4", f"filters={n}") for n in range(4, 11)], WebLimits(networks=2)
    )
    for key in service.offers:
        service.new_game(NewGame(key))
    assert service._num_unloaded == 5 and cleared == [2, 4]


def test_a_network_compiled_while_caches_are_cleared_does_no_harm(monkeypatch) -> None:
    def clear() -> None:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(ServedNetwork, "begin", lambda self: None)
    monkeypatch.setattr(jax, "clear_caches", clear)
    service = Service([GO5, TICTACTOE], WebLimits(networks=1))
    for key in service.offers:
        service.new_game(NewGame(key))
    assert service._num_unloaded == 1


def test_a_network_that_was_unloaded_during_a_search_counts_again_after_it() -> None:
    with running((GO5, TICTACTOE), WebLimits(networks=1)) as server:
        with Visitor(server.url) as reviewer, Visitor(server.url, network="1") as other:
            reviewer.play("C3", "C4", "B3", "B4")
            review = reviewer.stream("review", visits=500)
            next(review)
            other.events("think", visits=2)
            for network in server.service._networks.values():
                network.begin().finish()
            assert list(review)[-1][0] == "end"
        networks = server.service._networks.values()
        assert [network._loading is not None for network in networks] == [True, False]


def test_networks_in_use_by_turns_are_not_loaded_again_before_they_are_there(monkeypatch) -> None:
    """Each turn began another thread that compiled; after a minute there were a hundred."""
    begun, go_on = [], threading.Event()
    monkeypatch.setattr(
        ServedNetwork, "_load", lambda self, give: (begun.append(self), go_on.wait(20))
    )
    service = Service([GO5, TICTACTOE], WebLimits(networks=1))
    for key in "01" * 5:
        service.new_game(NewGame(key))
    go_on.set()
    assert len(begun) == 2 and len(service._loaded) == 2
    for network in begun:
        network._loading._thread.join()
    service.use(begun[0])
    assert list(service._loaded) == [begun[0]]


def test_a_network_that_is_unloaded_while_it_compiles_is_not_kept(monkeypatch) -> None:
    class Player:
        limit_memory = reset = print

        def warm_up_in_steps(self, position):
            yield
            assert unloaded.wait(20)

    unloaded = threading.Event()
    monkeypatch.setattr(networks, "load_thinker", lambda spec, rules: Player())
    spec, config = resolve(parse_player("random-net:tictactoe?blocks=1&filters=4"))
    network = ServedNetwork(spec, config, config.game.build(), WebLimits())
    loading = network.begin()
    network.wait(never)
    network.unload()
    unloaded.set()
    assert not network.is_warm(loading.finish())


def test_a_game_that_the_page_cannot_show_is_refused_at_the_start() -> None:
    pytest.importorskip("pgx")
    name = "random-net:connect_four?blocks=1&filters=4"
    with pytest.raises(ValueError, match=r"pgx connect_four on 6x7, which the page cannot show"):
        Service([name])


def test_a_network_that_cannot_be_loaded_says_why(tmp_path) -> None:
    config = resolve(parse_player(GO5))[1]
    broken = ServedNetwork(
        parse_player(f"checkpoint:{tmp_path}"), config, config.game.build(), WebLimits()
    )
    with pytest.raises(networks.StartError, match="has no checkpoint"):
        broken.wait(never)
    assert broken.state == "failed" and "has no checkpoint" in broken.problem


def test_a_record_is_opened_with_a_network_that_learned_on_its_board(monkeypatch) -> None:
    monkeypatch.setattr(ServedNetwork, "begin", lambda self: None)
    service = Service(["random-net:go9_efficient?blocks=1&filters=8", GO5])
    assert service.describe()["networks"][0]["sides"] == list(range(2, 26))
    boards = {"5": "1", "3": "0", "7": "0", "9": "0", "9:7": "0", "21": "0"}
    for size, network in boards.items():
        record = read_record("x.sgf", f"(;SZ[{size}];B[cc])".encode())
        assert service.open(NewGame("0"), record).network_key == network


def test_a_network_that_plays_any_board_plays_rectangles() -> None:
    with (
        running(["random-net:go9_efficient?blocks=1&filters=8"]) as server,
        Visitor(server.url, columns=7, rows=5) as visitor,
    ):
        assert visitor.game["board"] == [5, 7] and len(visitor.game["stones"]) == 35
        visitor.play("G1")
        events = visitor.events("think", visits=8, plays=True, ownership=True)
        assert events[-2][0] == "game" and events[-2][1]["ply"] == 2
        answer = visitor.http.post("/api/games", json={"network": "0", "columns": 26})
        assert answer.status_code == 400 and "columns" in answer.json()["error"]
