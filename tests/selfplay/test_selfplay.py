"""Self-play: games restart in place, ends and winners are recorded, resignation and playout caps do
what they say, and no collective is compiled."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kept_reference import KeptReference, hashing_leaf
from policy_words import split_words

from azero import mesh as mesh_lib
from azero.games.table import make
from azero.search.batched.reuse import make_new_trees
from azero.search.leaf import uniform_leaf
from azero.search.search import SearchOutput
from azero.search.settings import PuctConfig
from azero.selfplay.resignation import ResignCalibration, lowest_points_of_games
from azero.selfplay.selfplay import in_chunks, make_selfplay, to_host
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.targets import MAX_ACTIONS, countable, dense_policy, policy_room, policy_words
from azero.selfplay.trajectory import Assembler

GAME = make("tictactoe")


def random_search(value=0.0):
    """A search that knows nothing: uniform weights over legal moves, a random legal action, and the
    value it is told (its parameter)."""

    def search(params, key, roots):
        legal = jax.vmap(GAME.legal_action_mask)(roots)
        scores = jnp.where(legal, jax.random.uniform(key, legal.shape), -1.0)
        weights = legal / legal.sum(-1, keepdims=True)
        batch = legal.shape[0]
        constant = jnp.full(batch, value, jnp.float32)
        return SearchOutput(
            jnp.argmax(scores, -1), weights, legal.astype(jnp.int32), constant, constant, None
        )

    return search


def play(config, search, fast=None, devices=1, dispatches=2, threshold=-0.9):
    mesh = mesh_lib.make_mesh(jax.devices()[:devices])
    selfplay = make_selfplay(config, GAME, search, fast, mesh)
    carry = selfplay.init(jax.random.key(0))
    chunks = []
    for i in range(dispatches):
        carry, chunk = selfplay.play({}, carry, jax.random.key(i), jnp.float32(threshold))
        chunks.append(to_host(chunk))
    return chunks


def replay(actions):
    state = GAME.init()
    for action in actions:
        assert GAME.legal_action_mask(state)[action]
        state = GAME.step(state, jnp.int32(action))
    return state


@pytest.mark.parametrize("devices", [1, 8])
def test_games_replay_to_their_recorded_ends(devices):
    config = SelfplayConfig(num_games=16, moves_per_dispatch=12, temperature_moves=4, resign=False)
    assembler = Assembler(16)
    games = [
        assembler.add(chunk, network=0) for chunk in play(config, random_search(), devices=devices)
    ]
    assert sum(len(g.length) for g in games) >= 32
    for record in games:
        for start, length, result in zip(record.starts, record.length, record.result, strict=True):
            state = replay(record.action[start : start + length])
            assert GAME.is_terminal(state)
            np.testing.assert_array_equal(GAME.rewards(state), result)
            np.testing.assert_array_equal(
                record.to_play[start : start + length], np.arange(length) % 2
            )
            np.testing.assert_array_equal(record.frame[start], GAME.pack_frame(GAME.init()))


def test_a_hopeless_game_is_resigned_by_the_side_to_move_except_where_it_is_played_out():
    config = SelfplayConfig(num_games=64, moves_per_dispatch=9, resign=True, resign_disabled=0.5)
    chunk = play(config, random_search(value=-0.95), dispatches=1)[0]
    can = chunk.can_resign[0]
    assert 10 < can.sum() < 54
    assert chunk.finished[0][can].all() and chunk.resigned[0][can].all()
    np.testing.assert_array_equal(chunk.rewards[0][can], np.tile([-1.0, 1.0], (can.sum(), 1)))
    assert not chunk.resigned[0][~can].any() and not chunk.finished[0][~can].any()


def test_a_threshold_below_the_value_resigns_nothing():
    config = SelfplayConfig(num_games=32, moves_per_dispatch=9, resign=True, resign_disabled=0.1)
    assert not play(config, random_search(value=-0.5), dispatches=1, threshold=-0.9)[
        0
    ].resigned.any()


def test_resignation_compares_the_values_that_the_threshold_was_calibrated_on():
    """A search is always at -0.8 in float32, which lies below -0.8 in the float16 of the record."""
    config = SelfplayConfig(num_games=64, moves_per_dispatch=9, resign=True, resign_disabled=0.5)
    (chunk,) = play(config, random_search(value=-0.8), dispatches=1, threshold=-2.0)
    calibration = ResignCalibration(min_games=20)
    calibration.add(lowest_points_of_games(Assembler(64).add(chunk, network=0)))
    assert -0.8 < calibration.threshold < -0.79 and calibration.false_positives() == 0.0
    (chunk,) = play(
        config, random_search(value=-0.8), dispatches=1, threshold=calibration.threshold
    )
    assert not chunk.resigned.any()


def test_playout_caps_mark_the_targets():
    config = SelfplayConfig(
        num_games=4,
        moves_per_dispatch=64,
        fast_simulations=1,
        full_search_probability=0.25,
        resign=False,
    )
    chunk = play(config, random_search(value=0.5), fast=random_search(value=0.25), dispatches=1)[0]
    full = chunk.is_target[:, 0]
    assert 4 <= full.sum() <= 32
    np.testing.assert_array_equal(chunk.root_value[:, 0] == 0.5, full)
    np.testing.assert_array_equal(
        chunk.is_target, np.broadcast_to(full[:, None], chunk.is_target.shape)
    )


def first_legal_search(params, key, roots):
    """A search that wants the first legal move and is sure of it."""
    legal = jax.vmap(GAME.legal_action_mask)(roots)
    action = jnp.argmax(legal, -1)
    weights = jax.nn.one_hot(action, legal.shape[-1])
    zero = jnp.zeros(legal.shape[0], jnp.float32)
    return SearchOutput(action, weights, weights.astype(jnp.int32), zero, zero, None)


@pytest.mark.parametrize("target", ["result", "search"])
def test_strays_are_legal_and_end_with_the_opening(target):
    config = SelfplayConfig(
        num_games=64,
        moves_per_dispatch=9,
        temperature_moves=0,
        resign=False,
        random_moves=3,
        random_share=0.5,
        value_before_random=target,
    )
    chunk = play(config, first_legal_search, dispatches=1)[0]
    strays = np.zeros(9, int)
    for slot in range(64):
        state = GAME.init()
        for ply, action in enumerate(chunk.action[:5, slot]):  # no game ends before
            legal = np.asarray(GAME.legal_action_mask(state))
            assert legal[action]
            # what is learned is the search's
            assert split_words(chunk.policy[ply, slot])[0].tolist() == [
                a if a == np.argmax(legal) else -1 for a in range(9)
            ]
            strays[ply] += action != np.argmax(legal)
            assert chunk.is_random[ply, slot] or action == np.argmax(legal) or target == "result"
            state = GAME.step(state, jnp.int32(action))
    known = chunk.is_random[:5].sum(axis=1)
    assert (known >= (strays[:5] if target == "search" else 0)).all() and not known[3:].any()
    assert known.any() == (target == "search")
    assert (strays[:3] > 10).all() and (strays[:3] < 50).all() and not strays[3:].any()


def test_waves_search_every_position_once():
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (12, *leaf.shape)), GAME.init())
    output = in_chunks(random_search(value=0.5), 4)({}, jax.random.key(0), states)
    assert output.action.shape == (12,) and output.weights.shape == (12, 9) and output.tree is None
    assert len(set(np.asarray(output.action).tolist())) > 1


def test_no_collective_is_compiled():
    mesh = mesh_lib.make_mesh(jax.devices())
    selfplay = make_selfplay(
        SelfplayConfig(num_games=16, moves_per_dispatch=2), GAME, random_search(), None, mesh
    )
    carry = selfplay.init(jax.random.key(0))
    text = selfplay.play.lower({}, carry, jax.random.key(0), jnp.float32(-0.9)).compile().as_text()
    for word in ("all-reduce", "all-gather", "collective-permute", "all-to-all", "reduce-scatter"):
        assert word not in text


def test_settings_that_do_not_divide_are_refused_with_both_numbers():
    mesh = mesh_lib.make_mesh(jax.devices())
    with pytest.raises(ValueError, match=r"num-games = 12 .* 8 devices"):
        make_selfplay(SelfplayConfig(num_games=12), GAME, random_search(), None, mesh)
    with pytest.raises(ValueError, match=r"search-batch = 3 .* 4 games"):
        make_selfplay(
            SelfplayConfig(num_games=32, search_batch=3), GAME, random_search(), None, mesh
        )


def test_forced_visits_are_neither_taught_nor_played():
    """A real search, in full and fast: the words of a target are the visits that are left."""
    simulations = 60
    settings = PuctConfig(
        num_simulations=simulations, dirichlet_alpha=1.0, forced_playouts=3.0, root_temperature=1.2
    )
    leaf = uniform_leaf(GAME)
    config = SelfplayConfig(
        num_games=16,
        moves_per_dispatch=12,
        temperature_moves=9,
        resign=False,
        fast_simulations=8,
        full_search_probability=0.7,
    )
    selfplay = make_selfplay(
        config,
        GAME,
        settings.build(GAME, leaf),
        settings.fast(8).build(GAME, leaf),
        mesh_lib.make_mesh(jax.devices()[:1]),
        most_visits=simulations,
    )
    carry = selfplay.init(jax.random.key(0))
    _, chunk = selfplay.play({}, carry, jax.random.key(1), jnp.float32(-0.9))
    chunk = to_host(chunk)
    actions, counts = split_words(chunk.policy)
    full = chunk.is_target[:, 0]
    assert full.any() and not full.all()
    sums = counts.sum(-1)
    np.testing.assert_array_equal(sums[~full], 8)
    assert (sums <= simulations).all() and (sums[full] < simulations).mean() > 0.2
    assert not (counts[full] == 1).any()
    np.testing.assert_array_equal(
        ((actions == chunk.action[..., None]) & (counts > 0)).any(-1), True
    )


@pytest.mark.parametrize(("devices", "search_batch"), [(1, None), (2, 2)])
def test_trees_are_kept_until_a_game_ends(devices, search_batch):
    """The policy target of every move of eight games, which resign, play fast moves and random
    ones, is the visits of a plain Python tree that is kept from move to move."""
    settings = PuctConfig(num_simulations=10, dirichlet_fraction=0.0, reuse_tree=True)
    leaf = hashing_leaf(GAME)
    config = SelfplayConfig(
        num_games=8,
        search_batch=search_batch,
        moves_per_dispatch=10,
        temperature_moves=4,
        resign=True,
        resign_disabled=0.5,
        fast_simulations=3,
        full_search_probability=0.7,
        random_moves=3,
        random_share=0.3,
    )
    selfplay = make_selfplay(
        config,
        GAME,
        settings.build(GAME, leaf),
        settings.fast(3).build(GAME, leaf),
        mesh_lib.make_mesh(jax.devices()[:devices]),
        most_visits=10,
        new_trees=make_new_trees(settings, GAME, 10),
    )
    carry = selfplay.init(jax.random.key(0))
    assert carry.kept is None
    carry = carry._replace(kept=selfplay.new_trees())
    chunks = []
    for i in range(2):
        carry, chunk = selfplay.play(np.float32(1), carry, jax.random.key(i), jnp.float32(-0.2))
        chunks.append(to_host(chunk))
    chunk = type(chunk)(*(np.concatenate(column) for column in zip(*chunks, strict=True)))
    actions, counts = split_words(chunk.policy)
    assert chunk.resigned.any() and (chunk.finished & ~chunk.resigned).any()
    kept = 0
    for slot in range(8):
        tree, state = (
            KeptReference(GAME, lambda _, *rest: leaf(np.float32(1), *rest), settings),
            None,
        )
        for move in range(20):
            if state is None:
                state, tree.root = GAME.init(), None
            kept += tree.root is not None
            tree.begin(state)
            root = tree.search(10 if chunk.is_target[move, slot] else 3)
            there = actions[move, slot] >= 0
            found = dict(zip(actions[move, slot, there], counts[move, slot, there], strict=True))
            assert found == root.visits
            if chunk.finished[move, slot]:
                state = None
                continue
            tree.play(int(chunk.action[move, slot]))
            state = GAME.step(state, chunk.action[move, slot])
    assert 60 < kept < 150


def test_visits_beyond_the_room_of_a_word_keep_their_proportions():
    visits = jnp.array([[3, 0, 65535], [131070, 1, 65535]], jnp.int32)
    np.testing.assert_array_equal(countable(visits), [[3, 0, 65535], [65535, 0, 32767]])


def test_a_game_with_more_actions_than_can_be_stored_is_refused():
    """The last action that is stored keeps its number; the next one would be another's."""
    game = SimpleNamespace(name="wide", num_actions=MAX_ACTIONS, max_legal_actions=2)
    last = jnp.zeros(MAX_ACTIONS, jnp.int32).at[-1].set(3)
    words = policy_words(last, policy_room(game))
    assert int(jnp.argmax(dense_policy(words, MAX_ACTIONS))) == MAX_ACTIONS - 1
    assert jnp.iinfo(jnp.int16).max == MAX_ACTIONS - 1, "actions are stored as int16"
    game.num_actions += 1
    with pytest.raises(ValueError, match=r"wide has 32,769 actions; .* at most 32,768"):
        policy_room(game)
