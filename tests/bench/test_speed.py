"""The measurements of speed on tiny settings: results of the right shape, figures that cannot be
wrong, tables with the command beside the number."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero import mesh as mesh_lib
from azero.bench import forward, loop, scaling, search, train
from azero.bench.games import engine_of, spread_games
from azero.bench.settings import SETTINGS, make_config, one_pass
from azero.chips import peak_flops
from azero.console.tables import results_table
from azero.games.table import make
from azero.games.tictactoe.settings import TicTacToeConfig
from azero.learn.settings import LearnerConfig
from azero.networks.settings import ResNetConfig
from azero.search.batched.tree import tree_bytes
from azero.search.settings import GumbelConfig, PuctConfig
from azero.selfplay.settings import SelfplayConfig

GAME = make("go", size=3)


@pytest.fixture(scope="module")
def tiny():
    """A run of seconds: tic-tac-toe, one block of 8, 4 simulations, 8 games."""
    config = make_config(SETTINGS["9x9"])
    return one_pass(
        dataclasses.replace(
            config,
            game=TicTacToeConfig(),
            network=ResNetConfig(
                blocks=1,
                filters=8,
                value_hidden=8,
                train_dtype="float32",
                inference_dtype="float32",
                convolution="dots",
            ),
            search=GumbelConfig(num_simulations=4, max_considered=4),
            selfplay=SelfplayConfig(
                num_games=8, moves_per_dispatch=2, dispatches_per_iteration=1, resign=False
            ),
            learner=LearnerConfig(batch_size=16, optimiser="adamw", learning_rate=((0, 1e-3),)),
        )
    )


def test_games_are_spread_over_their_lengths():
    game = make("tictactoe")
    states = jax.jit(lambda key: spread_games(engine_of(game), 64, 9, key))(jax.random.key(0))
    assert not jax.vmap(game.is_terminal)(states).any()
    free = np.asarray(jax.vmap(game.legal_action_mask)(states).sum(-1))
    assert free.max() == 9 and len(np.unique(free)) > 5


def test_the_loop_is_measured_and_beside_another_it_shows_ratios(tiny):
    ours = loop.measure_ours(tiny, iterations=1)
    assert 0 < ours.loop < ours.selfplay and ours.learning > ours.loop
    assert 0 < ours.cpu_selfplay < ours.cpu_loop
    assert ours.network_share is not None and ours.network_share > 0
    half = dataclasses.replace(ours, program="half", selfplay=ours.selfplay / 2, network_share=None)
    shown = loop.table([ours, half], "title")
    assert "(2.0 x)" in "".join(shown.columns[1].cells) and shown.row_count == 2
    with pytest.raises(ValueError, match="compares with pgx"):
        loop.run("fairy")


def test_the_network_is_asked_as_often_as_the_search_asks_it():
    assert forward.calls_of(PuctConfig(num_simulations=8), 82) == {1: 9}
    gumbel = forward.calls_of(GumbelConfig(num_simulations=32, max_considered=16), 82)
    assert sum(width * count for width, count in gumbel.items()) == 33
    assert max(gumbel) == 16 and gumbel[16] == 1


def test_the_search_of_any_game_is_timed():
    arguments = search.SearchArguments(
        against="none",
        game="tictactoe",
        batch=4,
        num_simulations=4,
        network="1x4",
        searches=("gumbel",),
        edge_width=5,
        repeats=1,
    )
    (result,) = search.run(arguments)
    assert result.calls == 2 and result.simulations_per_second > 0
    assert result.bytes_per_game == tree_bytes(4, make("tictactoe"), 5)


@pytest.mark.slow
def test_self_play_on_eight_devices_does_the_work_of_one(tiny):
    # With fewer games, what every device reads and computes once is a part of the whole.
    games = 2048
    selfplay = dataclasses.replace(tiny.selfplay, num_games=games)
    config = dataclasses.replace(tiny, selfplay=selfplay)
    one, eight = scaling.run(config, 8)
    assert one.flops_efficiency == one.bytes_efficiency == 1.0
    assert 0.9 < eight.flops_efficiency < 1.1 and eight.bytes_efficiency > 0.8
    assert eight.collectives == 0 and eight.total.flops > games * 5 * 2 * 9 * 9 * 3 * 8
    assert results_table([one, eight], "title", 0).row_count == 2
    with pytest.raises(ValueError, match="1000 devices"):
        scaling.run(config, 1000)


def test_operations_of_a_training_step_are_those_of_the_layers():
    blocks, filters, points, moves = 3, 8, 9, 10
    config = ResNetConfig(blocks=blocks, filters=filters, value_hidden=4)
    stem, tower = 9 * 17 * filters * points, 9 * filters * filters * 2 * (blocks - 1) * points
    heads = filters * 3 * points + 2 * points * moves + points * 4 + 4
    assert train.step_flops(config, GAME) == pytest.approx(
        2 * (2 * stem + 3 * (tower + heads)), rel=0.02
    )


def test_the_training_step_is_timed():
    alone, unpacked = train.run(
        train.TrainArguments(size=3, blocks=1, filters=8, batch=16, steps=2, repeats=1)
    )
    assert alone.batch == 16 and alone.positions_per_second == pytest.approx(
        16 / alone.step_seconds
    )
    assert alone.peak is None and alone.product > 0 and unpacked.flops > 0
    known = dataclasses.replace(alone, peak=4 * alone.flops)
    assert known.cells()["of the peak"] == "25%"


def test_a_batch_that_does_not_fit_is_halved(capsys):
    def measure(batch):
        if batch > 32:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return 1.0, 2.0

    assert train.fit(128, 8, measure) == (32, (1.0, 2.0))
    assert "a batch of 64 does not fit the memory; 32 instead" in capsys.readouterr().out
    with pytest.raises(jax.errors.JaxRuntimeError):
        train.fit(40, 8, measure)


def test_peaks_of_devices():
    assert (peak_flops("NVIDIA H200"), peak_flops("NVIDIA H200", "float32")) == (989e12, 494e12)
    assert peak_flops("TPU v5 lite", "float32") == peak_flops("TPU v5 lite") == 197e12
    assert (peak_flops("TPU v5"), peak_flops("TPU v5p")) == (459e12, 459e12)
    assert peak_flops("TPU v3") == 61.5e12, "of a device, which is one of a chip's two cores"
    assert peak_flops("TPU7x") == peak_flops("TPU v6 lite") * 2307 / 918 / 2
    assert peak_flops("Tesla T4", "float32") == 8.1e12
    assert peak_flops("abacus") is None and peak_flops("NVIDIA L40S") is None


def test_what_all_devices_make_of_a_product():
    assert (
        train.product_flops(mesh_lib.make_mesh(jax.devices()[:1]), str(jnp.dtype(jnp.float32)))
        > 1e8
    )
