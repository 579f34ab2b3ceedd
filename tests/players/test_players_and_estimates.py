"""Players by name, what a run costs, and the command line's one-line messages."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar, Literal

import jax
import numpy as np
import pytest

from azero.checkpoint.exported import write_exported
from azero.commands.doctor import diagnose
from azero.commands.main import main
from azero.cores import DEVICES_VARIABLE, num_cpu_devices
from azero.data.shard import row_dtype
from azero.engines.serve import Source
from azero.experiment import load
from azero.games.go.settings import GoConfig
from azero.games.position import Position
from azero.games.table import make
from azero.games.tictactoe.settings import TicTacToeConfig
from azero.networks.network import Inputs
from azero.players.clock import Clock
from azero.players.program_specs import GtpSpec
from azero.players.searches import rule_name, symmetry_of, tree_settings
from azero.players.specs import (
    CheckpointSpec,
    RandomNetSpec,
    ThinkerSettings,
    load_player,
    load_thinker,
    parse_player,
    resolve,
)
from azero.search.settings import MctxGumbelConfig, PuctConfig
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import Gumbel, Puct
from azero.settings import Config
from azero.train.estimate import estimate, mean_length, mean_simulations


def test_players_are_parsed():
    assert parse_player("checkpoint:runs/go5?visits=64&iteration=20") == CheckpointSpec(
        workdir=parse_player("checkpoint:runs/go5").workdir, iteration=20, visits=64
    )
    assert parse_player("checkpoint:runs/go5?search=engine") == dataclasses.replace(
        parse_player("checkpoint:runs/go5"), search="engine"
    )
    assert parse_player("checkpoint:runs/go5?visits=1").name == "go5, 1 visit"
    assert parse_player('gtp:gnugo --mode gtp --level "10"') == GtpSpec(
        ("gnugo", "--mode", "gtp", "--level", "10")
    )


@pytest.mark.parametrize(
    "text",
    [
        "runs/go5",
        "checkpoint:",
        "gtp:  ",
        "checkpoint:runs/go5?visit=3",
        "checkpoint:runs/go5?visits=many",
        "checkpoint:runs/go5?visits=99999999999",
        "uci:?nodes=1",
        "gtp:gnugo 'x",
    ],
)
def test_what_is_no_player_is_quoted(text):
    with pytest.raises(ValueError, match=r"player|is not understood"):
        parse_player(text)


def test_symmetries_of_a_player():
    text = "random-net:go5?blocks=1&filters=8&visits=0&symmetries=%s"
    moves = {}
    for symmetries in ("average", "random", "none"):
        spec, config = resolve(parse_player(text % symmetries))
        assert spec.name == f"random go5, 0 visits, symmetries {symmetries}"
        assert symmetry_of(config) == symmetries
        players = [load_thinker(spec, settings=ThinkerSettings(seed=seed)) for seed in range(4)]
        corner = Position.start(players[0].game).play("A1").play("B1").play("A2")
        moves[symmetries] = [each.choose(corner, Clock()).action for each in players]
    policies = [players[0].evaluate(corner, symmetry)[0] for symmetry in range(8)]
    assert len(set(moves["random"])) > 1
    assert set(moves["none"]) == {int(policies[0].argmax())}
    means = np.exp(np.mean([np.log(np.maximum(policy, 1e-30)) for policy in policies], axis=0))
    assert set(moves["average"]) == {int(means.argmax())}
    with pytest.raises(ValueError, match=r"symmetries=average\|random\|none|not understood"):
        parse_player(text % "all")


def test_estimate_of_the_published_run():
    """20 blocks of 256 at 19x19: 39 convolutions in the tower, about 22.8 million parameters there;
    4.9 million games' worth of positions."""
    config = load("go19").config
    cost = estimate(config)
    tower = 9 * 17 * 256 + 38 * 9 * 256 * 256
    assert cost.parameters > tower
    per_position = 2 * 361 * tower
    positions = (
        config.selfplay.num_games
        * config.selfplay.moves_per_dispatch
        * config.selfplay.dispatches_per_iteration
        * config.run.iterations
    )
    assert cost.flops == pytest.approx(positions * 1601 * per_position, rel=0.1)
    assert cost.seconds > 365 * 86400, "no machine with a CPU alone plays this in a year"
    trees = config.selfplay.num_games // jax.device_count()
    assert cost.tree_bytes == trees * cost.tree_bytes_per_game, "all are kept from move to move"
    forgetful = dataclasses.replace(config, search=config.search.replace(reuse_tree=False))
    batch, fewer = config.selfplay.search_batch, estimate(forgetful)
    assert batch is not None and fewer.tree_bytes == batch * fewer.tree_bytes_per_game


def test_playout_caps_lower_the_cost():
    config = Config()
    capped = dataclasses.replace(
        config,
        selfplay=dataclasses.replace(
            config.selfplay, fast_simulations=100, full_search_probability=0.25
        ),
    )
    assert mean_simulations(config) == 1600
    assert mean_simulations(capped) == 0.25 * 1600 + 0.75 * 100


def test_improved_policies_and_kept_trees_store_more_moves_than_simulations():
    """go5 with 16 simulations of Gumbel search stores all legal moves; go9_gumbel was to need a
    third of the disk that it takes. Fast moves store none."""
    few = PuctConfig(num_simulations=4)

    def words(search=few, **selfplay):
        config = load("go5").config
        changed = dataclasses.replace(config.selfplay, **selfplay)
        config = dataclasses.replace(config, search=search, selfplay=changed)
        row = row_dtype(config.game.build().frame_words)
        positions = round(config.replay.window_games * mean_length(config.game.build()))
        return (estimate(config).replay_bytes / positions - row.itemsize) / 4

    assert words() == 4
    assert words(few.replace(reuse_tree=True)) == words(load("go5").config.search) == 26
    assert words(fast_simulations=2, full_search_probability=0.25) == 1


def test_progressive_simulations_lower_the_cost():
    config = Config()
    late = config.run.iterations // 4
    few = dataclasses.replace(config.selfplay, simulations=((0, 400), (late, 800)))
    grown = dataclasses.replace(config, selfplay=few)
    assert mean_simulations(grown) == pytest.approx(700, rel=0.01)
    assert mean_simulations(grown, late - 1) == 400
    assert mean_simulations(grown, late) == 800


def test_parameters_agree_with_the_network():
    import jax

    config = load("go5").config
    network = config.network.build(Inputs((5, 5), 17, 26))
    variables = jax.eval_shape(network.init, jax.random.key(0))
    assert estimate(config).parameters == sum(
        int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(variables["params"])
    )


def test_the_doctor_asks_no_trees_of_what_learns_from_records(capsys):
    assert diagnose("sl19", compile_programs=False) == 0, "AlphaGo Zero's trees would not fit"
    assert "search tree" not in capsys.readouterr().out
    config = load("sl19").config
    assert estimate(config, plays=False).flops < estimate(config).flops


def test_the_doctor_counts_the_devices_of_a_run_and_says_which_setting_makes_trees_smaller():
    needs = "import azero.commands.doctor as d; d.memory_bytes = lambda: 1 << 20; "
    words = [sys.executable, "-c", f"{needs}d.diagnose('go19', compile_programs=False)"]
    environment = {name: value for name, value in os.environ.items() if name != DEVICES_VARIABLE}
    environment |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "COLUMNS": "200"}
    said = subprocess.run(words, env=environment, capture_output=True, text=True).stdout
    assert f"{num_cpu_devices()} x cpu" in said
    assert "do not fit into 1.0 MiB; a smaller selfplay.num-games makes them smaller" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["checkpoint", "nowhere"], "there is no directory nowhere"),
        (["match", "--first", "nobody", "--second", "gtp:gnugo"], "'nobody' is not a player"),
        (
            ["match", "--first", "gnugo", "--second", "go5"],
            'a program for matches begins with "gtp:',
        ),
        (["checkpoint", ".", "--iteration", "3"], "give a directory with --export"),
        (["elo"], "give at least one directory with matches"),
        (["elo", ".", "--anchor", "a=nan"], "'a=nan' is not an anchor; an anchor is NAME=ELO"),
        (["elo", ".", "--anchor", "a=1", "--anchor=b=x"], "'b=x' is not an anchor"),
        (["elo", ".", "--anchor", "a=x", "--draws", "half", "--anchor", "b=1"], "'a=x' is not an"),
        (["elo", ".", "--anchor", "a=1", "--anchor", "a=2"], "a player has several ratings"),
        (["doctor", "alphago9"], "alphago9 has several stages"),
        (["doctor", "chess960"], "unknown experiment 'chess960'; the experiments are: tictactoe"),
        (["bench", "loop", "--against", "fairy"], "compares with pgx, not 'fairy'"),
        (["bench", "engine", "--against", "fairy"], "compares with onnx and openvino, not 'fairy'"),
    ],
)
def test_the_command_line_answers_mistakes_in_one_line(words, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["azero", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1, said


def test_networks_that_have_learned_nothing_are_players():
    assert parse_player("random-net:go9?visits=64&seed=3") == RandomNetSpec(
        "go9", seed=3, visits=64
    )
    assert parse_player("random-net:go9").name == "random go9"
    with pytest.raises(ValueError, match="takes visits=NUMBER, seed=NUMBER"):
        parse_player("random-net:go9?iteration=3")
    with pytest.raises(ValueError, match="unknown experiment 'go99'"):
        load_thinker(RandomNetSpec("go99"))


def test_every_engine_plays_a_network_by_the_search_that_is_named():
    """AlphaGo Zero's rule for one that learned by it, AlphaZero's, Gumbel's with its own constants,
    and the engine's where nothing is said."""
    plain = load_thinker(RandomNetSpec("tictactoe"))
    assert (
        plain._settings == TreeSettings(symmetry="random")
        and plain.style.choice == "lcb"
        and plain.name == "random tictactoe, engine"
    )
    for search, rule in [
        ("alphago_zero", Puct("alphago_zero", c_puct=1.5, unvisited="draw")),
        ("alphazero", Puct("alphazero", unvisited="loss")),
        ("gumbel", Gumbel(num_simulations=16, max_considered=9)),
        ("trained", Gumbel(num_simulations=16, max_considered=9)),
    ]:
        spec = Source(random_net="tictactoe", search=search).spec()
        assert (
            spec
            == Source(random_net=f"tictactoe?search={search}").spec()
            == Source(player=f"random-net:tictactoe?search={search}").spec()
        )
        thinker = load_thinker(spec)
        assert (
            thinker._settings.rule == rule
            and not thinker._settings.keeps_tree
            and thinker._settings.cache_size == 0
        )
        assert (
            thinker.style.choice == "visits"
            and thinker.name == f"random tictactoe, {'gumbel' if search == 'trained' else search}"
        )
    with pytest.raises(ValueError, match="mctx_gumbel searches many games at once"):
        tree_settings(
            dataclasses.replace(load("tictactoe").config, search=MctxGumbelConfig()), "trained", 9
        )


@dataclasses.dataclass(frozen=True)
class OwnSearchConfig(PuctConfig):
    """Settings of PUCT, another search."""

    MAKER: ClassVar[str] = "own:make_own"
    name: Literal["own"] = "own"  # type: ignore[assignment]


def test_a_rule_is_named_only_where_it_is_that_of_a_paper():
    """A run that learned by KataGo's first play searches so, and not by what AlphaZero's name
    says."""
    own = PuctConfig(puct_form="alphazero", first_play="reduced", variance_scale=0.85)
    config = dataclasses.replace(load("tictactoe").config, search=own)
    assert rule_name(own) == "trained" and rule_name(PuctConfig()) == "alphago_zero"
    assert rule_name(OwnSearchConfig()) == "own", "its settings are those of PUCT, it is not"
    assert tree_settings(config, "trained", 9).rule == Puct(
        "alphazero", unvisited="reduction", reduction=0.2, variance_scale=0.85
    )
    for search, rule in [
        ("alphazero", Puct("alphazero", unvisited="loss")),
        ("alphago_zero", Puct("alphago_zero", unvisited="draw")),
    ]:
        assert tree_settings(config, search, 9).rule == rule


def test_a_thinker_plays_under_other_rules_on_its_own_board():
    spec = RandomNetSpec("go5", visits=12, blocks=1, filters=8)
    rules = dataclasses.replace(load("go5").config.game, komi=0.5, superko="situational")
    thinker = load_thinker(spec, rules, ThinkerSettings(TreeSettings(batch=1)))
    assert (
        thinker.game.komi == 0.5
        and thinker.game.superko == "situational"
        and thinker.name == "random go5, 12 visits, engine"
    )
    position = Position.start(thinker.game)
    assert thinker.think(position, thinker.style.limits).visits == 12
    assert position.legal[thinker.choose(position, Clock()).action]
    # A player that has learned to count the margin goes on doing so where the referee does not.
    plain = Position.start(make("go", **rules.for_matches().options()))
    thinker.think(plain, thinker.style.limits)
    assert thinker.game.margin_weight == 0.5 and plain.game == thinker.game.seen_as(plain.game)
    with pytest.raises(ValueError, match="knows go on 5x5 and cannot play go on 19x19"):
        load_thinker(spec, GoConfig(size=(19,)))
    with pytest.raises(ValueError, match="knows go on 5x5 and cannot play tictactoe on 3x3"):
        load_player(spec, TicTacToeConfig())


@pytest.mark.parametrize("network", ["alphago_zero", "policy2016"])
def test_networks_of_recorded_games_fill_no_eyes(network: str, tmp_path: Path):
    """Records end before the passes: a network that knows nothing else would play on until it has
    no eyes left. That of 2016 has no pass at all."""
    config = load("sl9").config
    small = config.network.as_kind(network).replace(blocks=1, filters=8)
    if network == "alphago_zero":
        small = small.replace(heads="sep", tower="conv")
    kept = dataclasses.replace(config.evaluation, sensible_moves=network == "alphago_zero")
    planes = 48 if network == "policy2016" else config.game.planes
    config = dataclasses.replace(
        config, game=dataclasses.replace(config.game, planes=planes), network=small, evaluation=kept
    )
    game = config.game.build()
    made = config.network.build(game)
    write_exported(tmp_path, made.init(jax.random.key(1)), 1, config)
    spec = CheckpointSpec(tmp_path, visits=8)
    thinker = load_thinker(spec, settings=ThinkerSettings(TreeSettings(batch=1, symmetry="none")))
    position, rng = Position.start(thinker.game), np.random.default_rng(2)
    while points := sorted(set(np.flatnonzero(position.legal[:-1]).tolist()) - eyes_of(position)):
        position = position.play(int(rng.choice(points)))
        assert not position.is_over
    eyes = np.flatnonzero(position.legal[:-1])
    assert len(position.actions) > 100 and len(eyes) > 0, (
        "the board is full but for eyes that could be filled"
    )
    policy, _ = thinker.evaluate(position)
    assert policy[-1] == 1.0 and thinker.choose(position, Clock()).action == policy.size - 1
    raw = load_player(dataclasses.replace(spec, visits=0))
    found = raw.search(
        raw.params, jax.random.key(0), jax.tree.map(lambda leaf: leaf[None], position.state)
    )
    assert found.weights[0, -1] == 1.0 and found.action[0] == policy.size - 1


def eyes_of(position: Position) -> set[int]:
    """The empty points whose neighbours are all of the side to move, and of whose diagonals at most
    one, at the edge none, is the other side's."""
    board = np.pad(
        np.asarray(position.game.board(position.state)).reshape(9, 9), 1, constant_values=9
    )
    own = 1 if position.to_play == 0 else -1
    found = set()
    for row, column in np.argwhere(board == 0):
        around = board[row - 1 : row + 2, column - 1 : column + 2]
        sides, corners = around[[0, 1, 1, 2], [1, 0, 2, 1]], around[[0, 0, 2, 2], [0, 2, 0, 2]]
        if np.isin(sides, (own, 9)).all() and (corners == -own).sum() + (corners == 9).any() < 2:
            found.add(int((row - 1) * 9 + column - 1))
    return found
