"""The networks that ship: their files, their names as players, and the command that replaces them."""

import dataclasses
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import tyro
from rich.console import Console
from small_runs import quiet_run, tictactoe

from azero.api.model import load
from azero.checkpoint import load_variables
from azero.commands.main import checkpoint
from azero.commands.models import show_models
from azero.commands.publish import (
    PublishRequest,
    _command,
    _facts,
    _match_command,
    _settings,
    main,
    publish,
)
from azero.data.rows import read_rows, to_plain
from azero.data.run_files import EXPORTED
from azero.engines.serve import chosen_player
from azero.engines.source import DEFAULTS, Source
from azero.experiment import load as load_experiment
from azero.games.position import Position
from azero.match.directory import read_match
from azero.match.request import MatchRequest
from azero.match.sides import match_rules, read_sides
from azero.models import registry
from azero.models.naming import (
    NetworkName,
    find_directory,
    is_network,
    parse_network_name,
    read_visits,
)
from azero.models.registry import CARD, NETWORKS, find_network, list_names, read_network
from azero.players.clock import TimeControl
from azero.players.specs import CheckpointSpec, load_thinker, parse_player
from azero.players.thinking import Limits
from azero.train.arguments import parse_arguments

ROOT = Path(__file__).parents[2]


def test_every_network_that_ships_is_whole_and_has_its_own_card():
    names = list_names()
    assert {"go5", "go7", "go9", "go19", "minichess", "animal-shogi", "chess-endings"} <= set(names)
    assert names.index("go9") < names.index("go19"), "numbers in names are in their order"
    for name in names:
        network = read_network(name)
        variables, config = load_variables(network.directory)
        sizes = [leaf.size for leaf in jax.tree.leaves(variables["params"])]
        assert sum(sizes) == network.parameters
        tower = network.config.network.replace(convolution="auto")
        assert config == dataclasses.replace(network.config, network=tower)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(variables))
        assert (ROOT / network.card.experiment).is_dir(), name
        assert network.card.licence == "Apache-2.0"
        assert all(match.games > 0 for match in network.card.strength)
    assert sum(read_network(name).num_bytes for name in names) <= registry.MOST_BYTES


def test_the_defaults_play_their_games():
    for game, name in DEFAULTS.items():
        assert read_network(name).config.game.name == game


def test_cards_are_of_their_network(tmp_path):
    for name in ("go5", "go7"):
        (tmp_path / name).mkdir()
        for file in (EXPORTED, CARD):
            (tmp_path / name / file).write_bytes((NETWORKS / name / file).read_bytes())
    assert read_network("go5", tmp_path).card == read_network("go5").card
    (tmp_path / "go5" / EXPORTED).write_bytes((NETWORKS / "go7" / EXPORTED).read_bytes())
    with pytest.raises(ValueError, match=r"go5.card\.json is not the card of .*go5.*network"):
        read_network("go5", tmp_path)
    (tmp_path / "go7" / CARD).write_text("{}")
    with pytest.raises(ValueError, match="is not the card of a network"):
        read_network("go7", tmp_path)


def test_models_are_listed_without_jax():
    program = (
        "import sys; from azero.commands.main import main; main(); print('jax' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, "models"], capture_output=True, text=True, check=True
    ).stdout
    assert all(f" {name} " in said for name in list_names()) and said.endswith("False\n")


def test_one_model_says_everything(capsys):
    show_models("go5", as_json=True)
    facts = json.loads(capsys.readouterr().out)
    card = read_network("go5").card
    assert facts["game"]["size"] == [5] and facts["network"]["blocks"] == 4
    assert facts["strength"] == [dataclasses.asdict(match) for match in card.strength]
    assert any(match["lost"] for match in facts["strength"])
    show_models("go5", as_json=False)
    assert "GNU Go 3.8 level 10" in capsys.readouterr().out
    show_models(None, as_json=True)
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list_names()
    show_models("animal_shogi", as_json=True)
    assert json.loads(capsys.readouterr().out)["name"] == "animal-shogi"
    with pytest.raises(ValueError, match="no network 'go6' ships with azero; those that ship are"):
        show_models("go6", as_json=False)


def test_a_network_has_several_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directory = find_network("go9")
    expected = CheckpointSpec(directory, visits=40, search="engine")
    query = "?visits=40&search=engine"
    names = (
        "go9",
        "model:go9",
        f"checkpoint:{directory}",
        str(directory),
        f"{directory / EXPORTED}",
    )
    assert [parse_player(f"{name}{query}") for name in names] == [expected] * len(names)
    assert expected.name == "go9, 40 visits, engine"
    (tmp_path / "go9").mkdir()
    assert parse_player("go9").workdir == directory
    assert parse_player("./go9").workdir == Path("./go9")
    assert find_directory("go9") == find_network("go9")
    assert find_directory("runs/gone") == Path("runs/gone"), "whoever reads it says what is wrong"
    with pytest.raises(ValueError, match="'random-net:go9' is neither a network that ships nor"):
        find_directory("random-net:go9")
    with pytest.raises(ValueError, match="has options of a player; here go9 alone is a network"):
        find_directory("go9?iteration=3")
    assert read_visits("go9?visits=40") == 40 and read_visits("go9") is None
    assert read_visits("go9?visits=²") is None
    assert all(map(is_network, ("go9", "model:go9", "runs/gone"))) and not is_network("gtp:gnugo")
    for file, kind in (("best.txt.gz", "leela"), ("best.txt", "leela"), ("mine.onnx", "onnx")):
        assert parse_network_name(file) is None, "only files that are there have no prefix"
        (tmp_path / file).write_bytes(b"")
        assert parse_player(f"{file}?visits=3") == parse_player(f"{kind}:{file}?visits=3")
    ours = NetworkName("model", "animal-shogi", "visits=2")
    assert parse_network_name("animal_shogi?visits=2") == ours
    assert parse_network_name("model:animal_shogi?visits=2") == ours
    (tmp_path / "animal_shogi").mkdir()
    assert parse_network_name("animal_shogi") == NetworkName("checkpoint", "animal_shogi", "")
    assert parse_network_name("gtp:gnugo") is None and parse_network_name("go98") is None
    with pytest.raises(
        ValueError, match=r"iteration=3 in .model:go9.iteration=3. is not understood"
    ):
        parse_player("model:go9?iteration=3")
    with pytest.raises(ValueError, match="'go98' is not a player: there is no directory 'go98'"):
        parse_player("go98")
    with pytest.raises(
        ValueError, match=r"'go98.onnx' is not a player: there is no file 'go98.onnx'"
    ):
        parse_player("go98.onnx")


def test_a_network_that_ships_is_exported_by_its_name(tmp_path, capsys):
    checkpoint("go5")
    assert (
        f"exported network of iteration {read_network('go5').iteration}" in capsys.readouterr().out
    )
    checkpoint("go5", export=tmp_path / "mine")
    assert (tmp_path / "mine" / EXPORTED).exists()
    with pytest.raises(ValueError, match="there is no directory go98"):
        checkpoint("go98")


def test_commands_name_players_in_one_way():
    assert Source("go9", search="trained").spec() == parse_player("go9?search=trained")
    assert Source(player="go9").spec() == Source().spec("go") == parse_player("model:go9")
    assert Source(checkpoint="model:go9").spec() == parse_player("go9")
    with pytest.raises(ValueError, match="there is no directory go9"):
        Source(checkpoint="go9").spec()
    with pytest.raises(ValueError, match="give one player, not 2: go9, random-net:go9"):
        Source("go9", random_net="go9").spec()
    with pytest.raises(ValueError, match="'gtp:gnugo' is a program with its own protocol"):
        Source("gtp:gnugo").spec()
    sides = read_sides(MatchRequest("go9", "model:go9?visits=3"))
    version = f"go9, iteration {read_network('go9').iteration}"
    visits = sides[0].config.search.num_simulations
    assert sides[0].name == f"{version}, {visits} visits, gumbel"
    assert sides[1].name == f"{version}, 3 visits, gumbel"
    assert match_rules(MatchRequest("go9", "go9"), sides).build().board_shape == (9, 9)


def test_without_a_player_a_network_that_ships_plays_and_is_named(capsys):
    assert chosen_player(Source(), "go") == parse_player("go9")
    title = read_network("go9").card.title
    assert f"azero: no player is named: go9 ({title}) plays" in capsys.readouterr().err
    assert chosen_player(Source("go5"), "go") == parse_player("go5")
    assert capsys.readouterr().err == ""


def test_a_shipped_network_plays():
    thinker = load_thinker(parse_player("animal-shogi"))
    position = Position.start(thinker.game)
    analysis = thinker.think(position, Limits(visits=20))
    assert analysis.visits >= 20 and position.legal[analysis.moves[0].action]


def test_a_network_is_published_and_replaced_by_a_stronger_one_alone(tmp_path, monkeypatch):
    weak, strong, networks = tmp_path / "weak", find_network("tictactoe"), tmp_path / "networks"
    assert quiet_run("tictactoe", tictactoe(), weak) == 0
    quiet = Console(quiet=True)
    few = PublishRequest(
        "ttt", weak, games=40, visits=4, random_plies=1, experiment="experiments/ttt"
    )
    with pytest.raises(ValueError, match="weak is not in experiments/: --experiment names"):
        publish(dataclasses.replace(few, experiment=None), networks, quiet)
    with pytest.raises(ValueError, match="ttt is new: --title says"):
        publish(few, networks, quiet)
    shipped = publish(dataclasses.replace(few, title="Tic-tac-toe"), networks, quiet)
    assert shipped.iteration == 2 and shipped.card.strength == ()
    assert shipped.card.positions and shipped.card.hours is not None
    assert shipped.card.command.startswith("azero train tictactoe --network.filters 4 ")
    first = read_rows(weak / "metrics.jsonl")[0]
    facts = _facts(weak, shipped.config, 1, None)
    assert facts["positions"] == first["positions"] < shipped.card.positions
    assert facts["hours"] == round(first["seconds"] / 3600, 2)

    stronger = dataclasses.replace(few, checkpoint=strong, run=weak, out=tmp_path / "match")
    better = publish(stronger, networks, quiet)
    (match,) = better.card.strength
    assert match.games == 40 and match.won > match.lost and better.card.title == "Tic-tac-toe"
    assert match.opponent == "ttt of iteration 2, which shipped before"
    played = read_match(tmp_path / "match")["command"]["first"]
    assert played.endswith("&iteration=60"), "also where a run has learned on"
    assert match.settings == "4 visits, search gumbel, 1 random move first, first 4 moves sampled"
    with pytest.raises(ValueError, match=r"weak does not replace ttt: it scores .* above 50%"):
        publish(dataclasses.replace(few, out=tmp_path / "lost"), networks, quiet)
    assert read_network("ttt", networks) == better, "what is refused changes nothing"

    again = dataclasses.replace(few, name="new", title="x")
    publish(again, networks, quiet)
    one_more = PublishRequest("new", match=(tmp_path / "lost",))
    added = publish(one_more, networks, quiet)
    assert [found.won < found.lost for found in added.card.strength] == [True]
    assert publish(one_more, networks, quiet) == added, "the same match is there once"
    for request in (again, one_more):
        with pytest.raises(ValueError, match="is of iteration 60; new is of iteration 2"):
            publish(dataclasses.replace(request, match=(tmp_path / "match",)), networks, quiet)
    with pytest.raises(ValueError, match="nothing to do: name a checkpoint"):
        publish(PublishRequest("new"), networks, quiet)
    with pytest.raises(ValueError, match="ttt plays tictactoe on 3x3, the new network go on 9x9"):
        publish(dataclasses.replace(few, checkpoint=find_network("go9"), run=weak), networks, quiet)
    monkeypatch.setattr("azero.commands.publish.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="the package holds 1,000"):
        publish(dataclasses.replace(again, name="another"), networks, quiet)
    assert list_names(networks) == ["new", "ttt"]


def test_publishing_names_a_mistake(tmp_path):
    with pytest.raises(ValueError, match=re.escape(f"no run.json in {tmp_path}: --run names")):
        main(["go9", str(tmp_path)])


def test_the_command_of_a_card_starts_a_run_with_the_same_settings():
    go9 = load_experiment("go9")
    settings = load_experiment("go9_efficient").config
    assert not settings.selfplay.resign and go9.config.selfplay.resign
    words = shlex.split(_command("go9", settings, "runs/my sl9"))
    parsed = parse_arguments(go9, words[3:])
    assert parsed.settings == settings and parsed.from_network == Path("runs/my sl9")
    assert "--from-network" not in _command("go9", settings)


def test_the_match_of_a_card_can_be_played_again(tmp_path):
    clock = TimeControl(main_time=10.0, increment=0.5)
    openings = tmp_path / "openings.txt"
    openings.write_text("E5")
    request = MatchRequest(
        "model:go9",
        "gtp:gnugo --mode gtp",
        suicide=False,
        openings=openings,
        sprt=(0.0, 12.5),
        clock=clock,
    )
    command = to_plain(request.command)
    words = shlex.split(_match_command(command))
    again = tyro.cli(tyro.conf.OmitArgPrefixes[MatchRequest], args=words[2:])
    assert again == dataclasses.replace(request, openings=Path("openings.txt"))
    assert _settings(command, {}) == "main-time 10, increment 0.5, first 4 moves sampled"


def test_tictactoe_survives_every_reply():
    model = load("tictactoe")

    def lost(position: Position, own: int) -> int:
        """Lost games below a position, with the network as side `own` against every reply."""
        if position.is_over:
            return int(position.rewards[own] < 0)
        if position.to_play == own:
            return lost(position.play(model.search(position, visits=64).best), own)
        return sum(lost(position.play(move), own) for move in position.legal_moves())

    start = Position.start(model.game)
    assert lost(start, 0) == 0 and lost(start, 1) == 0


@pytest.mark.parametrize(
    "text",
    [
        "go9?visits=8&visits=9",
        "model:go9?pb-c-init=1&search=engine&pb_c_init=2",
        "apv:policy?visits=8&visits=9",
        "uci:stockfish?nodes=8&nodes=9",
        "usi:fairy-stockfish?option.Hash=8&option.Hash=9",
        "gnushogi:gnushogi?depth=1&depth=2",
    ],
)
def test_an_option_that_is_given_twice_is_refused(text):
    """Only the last one counted."""
    with pytest.raises(ValueError, match="is given twice in"):
        parse_player(text)
