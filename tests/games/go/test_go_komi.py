"""Komi in the planes, and games of several komis at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.games.go.settings import GoConfig
from azero.games.table import make


@pytest.mark.parametrize("size", [5, 6, (5, 7)])
def test_planes_show_the_komi_and_where_it_draws(size) -> None:
    for komi in np.arange(-6, 9.5, 0.5):
        go = make("go", size=size, komi=float(komi), num_planes=19)
        plain = make("go", size=size, komi=float(komi))
        for to_play in (0, 1):
            state, old = go.setup((3,), (8,), to_play), plain.setup((3,), (8,), to_play)
            planes = np.asarray(go.observe(state))
            np.testing.assert_array_equal(planes[..., :17], plain.observe(old))
            own = komi if to_play == 1 else -komi
            np.testing.assert_allclose(planes[..., 17], own / 10, rtol=1e-6)
            draws = [points for points in range(-60, 61) if (points - go.num_points) % 2 == 0]
            nearest = min((own - points for points in draws), key=abs)
            expected = {0.0: 0.0, 0.5: 0.5, -0.5: -0.5, 1.0: 0.0, -1.0: 0.0}[nearest]
            np.testing.assert_array_equal(planes[..., 18], expected)
            frames = np.zeros((8, go.frame_words), np.uint32)
            frames[0] = go.pack_frame(state)
            np.testing.assert_array_equal(
                go.observe_frames(jnp.asarray(frames), jnp.int32(to_play)), planes
            )
            assert go.komi_of(frames[0].tolist()) == komi


def test_each_game_is_counted_with_its_own_komi() -> None:
    komis = (-3.5, 0.0, 5.0, 24.5, 25.0, 25.5)
    go = make("go", size=5, komi=7.5, num_planes=19)
    states = go.empty_boards(komis)
    for move in (12, 25, 25):
        states = jax.vmap(go.step)(states, jnp.full(len(komis), move, jnp.int32))
    rewards = np.asarray(jax.vmap(go.rewards)(states))
    np.testing.assert_array_equal(rewards[:, 0], [1, 1, 1, 1, 0, -1])
    np.testing.assert_array_equal(rewards[:, 1], -rewards[:, 0])
    slim = jax.vmap(go.search_state)(states)
    np.testing.assert_array_equal(jax.vmap(go.rewards)(slim), rewards)


def test_the_host_keeps_the_komi_too() -> None:
    go = make("go", size=5, komi=24.5, num_planes=19)
    state = go.host_init()
    for move in (12, 25, 25):
        state = go.host_step(state, move)
    assert go.host_facts(state).rewards == (1.0, -1.0)
    assert float(go.rewards(state)[0]) == 1.0


def test_several_komis_need_planes_that_show_them() -> None:
    with pytest.raises(ValueError, match=r"game.selfplay-komis needs .* game.planes 19"):
        GoConfig(selfplay_komis=(6.5, 7.5))
    assert GoConfig(planes=19, selfplay_komis=(6.5, 7.5)).build().num_planes == 19
