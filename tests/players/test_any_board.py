"""One network on several boards and komis: players, matches, estimates of points, owners and
draws."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from untrained import draw_variables

from azero.checkpoint.exported import write_exported
from azero.experiment import load
from azero.games.go.settings import GoConfig
from azero.games.position import Position
from azero.games.table import make
from azero.match.matches import play_match
from azero.match.request import MatchRequest
from azero.networks.settings import PooledConfig, ResNetConfig
from azero.players.points import PointsEstimate
from azero.players.specs import load_thinker, parse_player
from azero.players.thinking import Limits

SMALL = {"blocks": 2, "filters": 8, "value_hidden": 8, "convolution": "winograd"}


def export(
    directory: Path, pooled: bool, sees_komi: bool = True, learns_points: bool = True
) -> str:
    """Write an untrained network of 5x5; return the player's name."""
    config = load("go5").config
    if pooled:
        komi_planes = {"planes": 19, "selfplay_komis": (0.5, 24.5)} if sees_komi else {}
        config = dataclasses.replace(
            config,
            game=GoConfig(size=(5,), komi=0.5, **komi_planes),
            network=PooledConfig(head_filters=4, **SMALL),
        )
        if learns_points:
            learner = dataclasses.replace(config.learner, ownership_weight=1.5, score_weight=0.02)
            config = dataclasses.replace(config, learner=learner)
    else:
        config = dataclasses.replace(config, network=ResNetConfig(**SMALL))
    network = config.network.build(config.game.build())
    variables = draw_variables(network)
    write_exported(directory, variables, 3, config)
    return f"checkpoint:{directory}"


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> str:
    return export(tmp_path_factory.mktemp("pooled"), pooled=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return export(tmp_path_factory.mktemp("plain"), pooled=False)


@pytest.mark.usefixtures("two_devices")
def test_a_match_of_networks_with_and_without_komi_planes(pooled, plain, tmp_path) -> None:
    for first, second in ((pooled, plain), (plain, pooled)):
        request = MatchRequest(
            f"{first}?visits=4", f"{second}?visits=0", games=4, temperature_moves=4, komi=2.5
        )
        assert play_match(request, Console(quiet=True)).result.total.games == 4


@pytest.mark.usefixtures("two_devices")
def test_a_match_on_another_board(pooled, plain) -> None:
    request = MatchRequest(
        f"{pooled}?visits=4", f"{pooled}?visits=0", games=2, temperature_moves=4, size=4
    )
    assert play_match(request, Console(quiet=True)).result.total.games == 2
    with pytest.raises(ValueError, match="on 5x5, not go on 4x4"):
        play_match(dataclasses.replace(request, second=plain), Console(quiet=True))


@pytest.mark.parametrize("search", ["", "&search=engine"])
def test_a_match_of_networks_that_see_other_histories(tmp_path, search) -> None:
    names = []
    for history in (8, 1):
        config = load("animal_shogi").config
        config = dataclasses.replace(
            config,
            game=dataclasses.replace(config.game, history=history, max_moves=6),
            network=ResNetConfig(blocks=1, filters=8, value_hidden=8, convolution="xla"),
        )
        variables = draw_variables(config.network.build(config.game.build()))
        write_exported(tmp_path / str(history), variables, 3, config)
        names.append(f"checkpoint:{tmp_path / str(history)}?visits=")
    for first, second in (names, names[::-1]):
        request = MatchRequest(
            f"{first}4{search}", f"{second}0{search}", games=2, temperature_moves=4
        )
        assert play_match(request, Console(quiet=True)).result.total.games == 2


def test_points_are_estimated_for_the_side_to_move(pooled) -> None:
    spec = parse_player(f"{pooled}?visits=4")
    leads = {}
    for komi in (0.5, 10.5):
        thinker = load_thinker(spec, GoConfig(size=(5,), komi=komi))
        position = Position.start(thinker.game).play(12)
        here, after = thinker.estimate_points(position, [0])
        assert isinstance(here, PointsEstimate) and here.ownership.shape == (25,)
        assert abs(here.ownership).max() <= 1 and here.stdev > 0
        (moved,) = thinker.estimate_points(position.play(0))
        assert moved.lead == pytest.approx(-after.lead, abs=1e-4)
        np.testing.assert_allclose(moved.ownership, -after.ownership, atol=1e-5)
        # Of a symmetric board the estimate is symmetric.
        board = here.ownership.reshape(5, 5)
        np.testing.assert_allclose(board, board[::-1], atol=1e-4)
        np.testing.assert_allclose(board, board.T, atol=1e-4)
        assert thinker.think(position, Limits(visits=4)).visits == 4
        leads[komi] = here.lead
    # White is to move; the network, which is not trained, may see the komi a little differently.
    assert 5 < leads[10.5] - leads[0.5] < 15


def test_heads_that_a_run_did_not_train_estimate_nothing(tmp_path) -> None:
    """`go19` learned from records without them; it said that Black leads by 113 points."""
    spec = parse_player(f"{export(tmp_path, True, learns_points=False)}?visits=1")
    thinker = load_thinker(spec)
    assert thinker.estimate_points(Position.start(thinker.game)) is None


def test_the_lead_has_the_komi_of_the_game_where_the_network_sees_none(tmp_path) -> None:
    thinker = load_thinker(parse_player(f"{export(tmp_path, True, sees_komi=False)}?visits=1"))
    leads = []
    for komi in (0.5, 10.5):
        position = Position.start(make("go", size=5, komi=komi)).play(12)
        here, after = thinker.estimate_points(position, [0])
        leads += [here.lead, after.lead]
    assert leads[2:] == pytest.approx([leads[0] + 10, leads[1] + 10], abs=1e-4), "White is to move"


def test_networks_of_the_papers_estimate_no_points(plain) -> None:
    thinker = load_thinker(parse_player(f"{plain}?visits=1"))
    assert thinker.estimate_points(Position.start(make("go", size=5, komi=0.5))) is None


def test_draws_are_those_of_the_network_and_of_the_rules(tmp_path) -> None:
    import jax

    config = dataclasses.replace(
        load("tictactoe").config, network=PooledConfig(head_filters=4, **SMALL)
    )
    game = config.game.build()
    network = config.network.build(game)
    variables = draw_variables(network)
    write_exported(tmp_path, variables, 3, config)
    thinker = load_thinker(parse_player(f"checkpoint:{tmp_path}?visits=4"))
    position = Position.start(thinker.game)
    corner, centre, other = thinker.estimate_draws(position, [0, 4, 8])
    after = [np.asarray(game.observe(position.play(move).state)) for move in (0, 4)]
    planes = np.stack([np.rot90(after[0], turn) for turn in range(4)] + [after[1]])
    folded = jax.jit(network.fold)(variables)
    outcome = jax.jit(network.analyse)(folded, planes).auxiliary["outcome"]
    draws = np.asarray(jax.nn.softmax(outcome))[:, 1]
    assert corner == pytest.approx(draws[:4].mean(), abs=1e-4) == pytest.approx(other, abs=1e-4)
    assert centre == pytest.approx(draws[4], abs=1e-4)
    # X O X / X O O / O X .: the last move ends the game as a draw.
    for move in (0, 1, 2, 4, 3, 5, 7, 6):
        position = position.play(move)
    assert thinker.estimate_draws(position, [8]) == [1.0]
    first, *_, last = (
        thinker.estimate_draws(position, [8]) for _ in thinker.warm_up_in_steps(position)
    )
    assert (first, last) == (None, [1.0]), "a search does not wait for what is being compiled"
    assert thinker.estimate_points(position) is None


def test_draws_do_not_count_the_share_of_root_values_in_what_was_learned(tmp_path) -> None:
    """Root values count as wins and losses, so the output for a draw is the share of results times
    its probability; unscaled, dead draws had 4 to 7% in a run of chess with a share of 0.9."""
    config = load("tictactoe").config
    config = dataclasses.replace(config, network=PooledConfig(head_filters=4, **SMALL))
    variables = draw_variables(config.network.build(config.game.build()))

    def draws_after(directory: Path, **shares: float) -> list[float] | None:
        learner = dataclasses.replace(config.learner, **shares)
        write_exported(directory, variables, 3, dataclasses.replace(config, learner=learner))
        thinker = load_thinker(parse_player(f"checkpoint:{directory}?visits=4"))
        return thinker.estimate_draws(Position.start(thinker.game), [0])

    plain = draws_after(tmp_path / "results")
    mixed = draws_after(tmp_path / "mixed", root_value_share=0.25, lambda_return_share=0.25)
    none = draws_after(tmp_path / "values", lambda_return_share=1.0)
    assert mixed == pytest.approx([min(1.0, 2 * plain[0])], abs=1e-4)
    assert none is None, "no result was learned from"


def test_networks_of_the_papers_say_nothing_of_draws_nor_do_games_of_points(plain, pooled) -> None:
    for player in (plain, pooled):
        thinker = load_thinker(parse_player(f"{player}?visits=1"))
        assert thinker.estimate_draws(Position.start(thinker.game), [0]) is None
