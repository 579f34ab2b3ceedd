"""Rules of Go on hand-made boards: X is Black, O is White, a point without a stone is '.'."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from diagrams import parse_diagram

from azero.games.batching import batch_native
from azero.games.go import stones, text
from azero.games.go.rules import Go
from azero.games.go.setup import handicap_points
from azero.games.go.state import GoState
from azero.games.go.text import format_vertex


def position(diagram: str, to_play: str = "X", **options: Any) -> tuple[Go, GoState]:
    """A game that begins with the stones of a diagram."""
    board = parse_diagram(diagram.split("/"))
    game = Go(size=board.shape, **options)
    points = board.reshape(-1)
    return game, game.setup(
        np.flatnonzero(points == 1).tolist(),
        np.flatnonzero(points == -1).tolist(),
        to_play="XO".index(to_play),
    )


def play(game: Go, state: GoState, *vertices: str) -> GoState:
    """Play moves, each of which has to be legal."""
    for vertex in vertices:
        assert is_legal(game, state, vertex), f"{vertex} in\n{game.format_board(state)}"
        state = _step(game, state, vertex)
    return state


def _step(game: Go, state: GoState, vertex: str) -> GoState:
    return _jitted(game)[0](state, jnp.int32(text.parse_vertex(vertex, game.board_shape)))


@functools.cache
def _jitted(game: Go) -> tuple[Any, Any]:
    return jax.jit(game.step), jax.jit(game.legal_action_mask)


def is_legal(game: Go, state: GoState, vertex: str) -> bool:
    return bool(_jitted(game)[1](state)[text.parse_vertex(vertex, game.board_shape)])


def diagram(game: Go, state: GoState) -> str:
    """The board in the notation of `position`."""
    return "/".join("".join(".XO"[value] for value in row) for row in game.board(state))


# All boards are 5x5, so that few programs are compiled.
CAPTURES = {
    "a corner stone": ("OX.../...../...../...../.....", "X A4", ".X.../X..../...../...../....."),
    "two stones at the edge": (
        "XOO../.XX../...../...../.....",
        "X D5",
        "X..X./.XX../...../...../.....",
    ),
    "two chains at once": (
        ".OX../OX.../X..../...../.....",
        "X A5",
        "X.X../.X.../X..../...../.....",
    ),
    "capture comes before suicide": (
        ".XO../XOO../OO.../...../.....",
        "O A5",
        "O.O../.OO../OO.../...../.....",
    ),
    "a whole board": ("OOOOO/OOOOO/OOOOO/OOOOO/OOOO.", "X E1", "...../...../...../...../....X"),
    "snapback": ("..OX./OOOX./XXXX./...../.....", "X B5 A5 B5", ".X.X./...X./XXXX./...../....."),
    "both fill a shared liberty": (
        "XX.OO/XX.OO/XXXOO/XXXOO/XXXOO",
        "X C4 C5",
        "..OOO/...OO/...OO/...OO/...OO",
    ),
}


@pytest.mark.parametrize("name", CAPTURES)
def test_captures(name: str) -> None:
    before, moves, after = CAPTURES[name]
    to_play, *vertices = moves.split()
    game, state = position(before, to_play)
    assert diagram(game, play(game, state, *vertices)) == after


RULES = ("positional", "situational", "simple")


@pytest.mark.parametrize("superko", RULES)
def test_a_ko_waits_for_one_exchange(superko: str) -> None:
    game, state = position(".XO../X.XO./.XO../...../.....", "O", superko=superko)
    state = play(game, state, "B4")
    assert diagram(game, state) == ".XO../XO.O./.XO../...../....."
    assert not is_legal(game, state, "C4")
    state = play(game, state, "A1", "E1")
    assert is_legal(game, state, "C4")
    assert not is_legal(game, play(game, state, "C4"), "B4")


@pytest.mark.parametrize("superko", RULES)
def test_send_two_return_one(superko: str) -> None:
    """Black sends a second stone to A5, White takes both from C5, Black takes one back at B5: the
    first board again, with White to move instead of Black."""
    game, state = position(".X.X./OOXX./OOX../...../.....", "X", superko=superko)
    state = play(game, state, "A5", "C5")
    assert diagram(game, state) == "..OX./OOXX./OOX../...../....."
    assert is_legal(game, state, "B5") is (superko != "positional")
    if superko == "positional":
        return
    state = play(game, state, "B5", "pass")
    # Once more would make the second situation again: White to move after A5.
    assert is_legal(game, state, "A5") is (superko == "simple")


@pytest.mark.parametrize("superko", RULES)
def test_triple_ko(superko: str) -> None:
    """Six captures go round three kos; the sixth makes the first position again."""
    game, state = position(".XO./X.XO/.XO./X.XO/.XO./XO.O/.XO.", "O", superko=superko)
    state = play(game, state, "B6", "C2", "B4", "C6", "B2")
    assert is_legal(game, state, "C4") is (superko == "simple")
    assert is_legal(game, game.search_state(state), "C4") is (superko == "simple"), (
        "eight boards reach back far enough"
    )


def test_suicide_is_off_by_default() -> None:
    for board in (".O.../O..../...../...../.....", ".XO../XXO../OO.../...../....."):
        game, state = position(board, "X")
        assert not is_legal(game, state, "A5")


def test_suicide_of_several_stones() -> None:
    game, state = position(".XO../XXO../OO.../...../.....", "X", suicide=True)
    assert diagram(game, play(game, state, "A5")) == "..O../..O../OO.../...../....."


def test_suicide_of_a_single_stone() -> None:
    """It leaves the board as it is: forbidden, unless the rule is situational and the other side
    was never to move here."""
    for superko, allowed in (("positional", False), ("situational", True), ("simple", False)):
        game, state = position(".O.../O..../...../...../.....", "X", suicide=True, superko=superko)
        assert is_legal(game, state, "A5") is allowed, superko
    game, state = position(
        ".O.../O..../...../...../.....", "O", suicide=True, superko="situational"
    )
    assert not is_legal(game, play(game, state, "pass"), "A5")


def test_suicide_may_not_repeat() -> None:
    """Two stones on a row of two points die together and leave the empty board, which stood
    before."""
    game = Go(size=(1, 2), suicide=True)
    assert not is_legal(game, play(game, game.init(), "A1", "pass"), "B1")
    game = Go(size=(1, 2), suicide=True, superko="simple")
    state = play(game, game.init(), "A1", "pass")
    assert diagram(game, play(game, state, "B1")) == ".."


def test_suicide_frees_the_other_side() -> None:
    """After the suicide White's chain in atari has new liberties and is no longer taken by a stone
    at its old one."""
    game, state = position(".XO../XXO../OOX../.XX../.....", "X", suicide=True)
    state = play(game, state, "A5")
    assert diagram(game, state) == "..O../..O../OOX../.XX../....."
    assert diagram(game, play(game, state, "pass", "A2")) == "..O../..O../OOX../XXX../....."


SCORES = {
    "nobody's": ("...../...../...../...../.....", 0),
    "a lone stone owns all": ("X..../...../...../...../.....", 25),
    "a wall each and a neutral column": (".X.O./.X.O./.X.O./.X.O./.X.O.", 0),
    "two halves": (".XO../.XO../.XO../.XO../.XO..", -5),
    "two eyes": ("XXXXX/X.XXX/XXXXX/XXX.X/XXXXX", 25),
    "an eye each": (".XOOO/XXOOO/XXOOO/XXOO./XXOOO", -5),
    "seki: two shared liberties": ("XX.OO/XX.OO/XXXOO/XXXOO/XXXOO", 13 - 10),
    "dead stones count as alive": ("XXXXX/XO.XX/XX.XX/XXXXX/XX.XX", 21 + 1 - 1),
}


@pytest.mark.parametrize("name", SCORES)
def test_area_score(name: str) -> None:
    board, score = SCORES[name]
    game, state = position(board, komi=0.0)
    assert float(_scoring(game)[0](state)) == score
    owners = np.asarray(_scoring(game)[1](state.frames[0]), np.int32)
    assert owners.sum() == score
    stones = game.board(state)
    assert (owners[stones != 0] == stones[stones != 0]).all()


@functools.cache
def _scoring(game: Go) -> tuple[Any, Any]:
    return jax.jit(game.score), jax.jit(game.owners)


def test_results_and_draws() -> None:
    for komi, rewards in ((8.5, [1, -1]), (9.0, [0, 0]), (9.5, [-1, 1])):
        game, state = position(".../.X./...", "O", komi=komi)
        state = play(game, state, "pass")
        assert np.asarray(game.rewards(state)).tolist() == [0, 0]
        state = play(game, state, "pass")
        assert bool(game.is_terminal(state))
        assert np.asarray(game.rewards(state)).tolist() == rewards


def test_the_margin_counts_where_it_should() -> None:
    """Black owns the nine points of the board; a quarter of the reward is the margin."""
    for komi, reward in (
        (0.0, 0.75 + 0.25),
        (4.5, 0.75 + 0.25 / 2),
        (9.0, 0.0),
        (13.5, -0.75 - 0.25 / 2),
        (100.0, -1.0),
    ):
        game, state = position(".../.X./...", "O", komi=komi, margin_weight=0.25)
        state = play(game, state, "pass")
        assert np.asarray(game.rewards(state)).tolist() == [0, 0]
        state = play(game, state, "pass")
        assert np.asarray(game.rewards(state)).tolist() == pytest.approx([reward, -reward])
        assert game.result_of(float(game.final_points(state))) == pytest.approx(reward)
        assert (
            game.general().margin_weight == 0.25 and Go(3, komi).seen_as(game).margin_weight == 0.25
        )


def test_the_move_limit_ends_the_game() -> None:
    game = Go(size=3, max_moves=2)
    state = play(game, game.init(), "A1", "B1")
    assert bool(game.is_terminal(state))
    assert Go(size=19).max_moves == 722
    assert Go(size=(2, 5)).max_moves == 20


def test_two_passes_end_the_game_but_not_two_apart() -> None:
    game = Go(size=3)
    state = play(game, game.init(), "pass", "B2", "pass")
    assert not bool(game.is_terminal(state))
    assert bool(game.is_terminal(play(game, state, "pass")))


@pytest.mark.parametrize("count", range(2, 10))
def test_fixed_handicap_is_gtps(count: int) -> None:
    expected = {
        2: "D4 Q16",
        3: "D4 Q16 D16",
        4: "D4 Q16 D16 Q4",
        5: "D4 Q16 D16 Q4 K10",
        6: "D4 Q16 D16 Q4 D10 Q10",
        7: "D4 Q16 D16 Q4 D10 Q10 K10",
        8: "D4 Q16 D16 Q4 D10 Q10 K4 K16",
        9: "D4 Q16 D16 Q4 D10 Q10 K4 K16 K10",
    }[count]
    points = handicap_points(count, (19, 19))
    assert {format_vertex(point, (19, 19)) for point in points} == set(expected.split())


def test_fixed_handicap_on_small_boards() -> None:
    assert [format_vertex(point, (9, 9)) for point in handicap_points(2, (9, 9))] == ["C3", "G7"]
    for size, count, allowed in (
        (9, 10, "2 to 9"),
        (8, 5, "2 to 4"),
        (7, 5, "2 to 4"),
        (6, 2, "at least 7x7"),
    ):
        with pytest.raises(ValueError, match=allowed):
            handicap_points(count, (size, size))


BAD_OPTIONS = [
    ({"size": 0}, "sides are 1 to 31"),
    ({"size": (3, 32)}, "sides are 1 to 31"),
    ({"size": (9,)}, r"size is a number or a pair \(rows, columns\), not \(9,\)"),
    ({"size": "9"}, r"size is a number or a pair \(rows, columns\), not '9'"),
    ({"size": 9.0}, r"size is a number or a pair \(rows, columns\), not 9.0"),
    ({"komi": 0.25}, "komi is a multiple of 0.5 from -10,000 to 10,000, not 0.25"),
    ({"komi": 2e9, "num_planes": 19}, r"komi is a multiple of 0.5 .*, not 2e\+09"),
    ({"komi": float("nan")}, "komi is a multiple of 0.5 .*, not nan"),
    (
        {"superko": "sometimes"},
        "superko is one of positional, situational, simple, not 'sometimes'",
    ),
    ({"max_moves": 0}, "max-moves is from 1 to 100000, not 0"),
    ({"max_moves": 2**31 - 1}, "max-moves is from 1 to 100000, not 2147483647"),
    ({"margin_weight": 1.0}, "margin_weight is at least 0 and less than 1, not 1.0"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options_say_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Go(**options)


def test_the_size_may_be_numbers_of_numpy() -> None:
    assert Go(size=np.int64(9)) == Go(size=9)  # type: ignore[arg-type]
    assert Go(size=(np.int32(2), np.int32(3))) == Go(size=(2, 3))  # type: ignore[arg-type]


BAD_SETUPS = [
    ([9], [], "set-up point 9 is not on a 3x3 board"),
    ([0], [0], "two stones are set up at A3"),
    ([1, 3], [0], "the chain that is set up at A3 has no liberty"),
]


@pytest.mark.parametrize(("black", "white", "message"), BAD_SETUPS)
def test_bad_setups_say_what_is_wrong(black: list[int], white: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Go(size=3).setup(black, white, to_play=0)


def test_planes_are_in_the_papers_order() -> None:
    """X_t, Y_t, X_t-1, Y_t-1, ..., C, seen from the side to move; C is one for Black."""
    game = Go(size=3)
    state = game.init()
    assert np.asarray(game.observe(state))[..., 16].all()
    state = play(game, state, "A3", "C1", "B2")
    planes = np.asarray(game.observe(state))
    points = {
        plane: [
            text.format_vertex(int(p), (3, 3))
            for p in np.flatnonzero(planes[..., plane].reshape(-1))
        ]
        for plane in range(17)
    }
    assert points == {
        0: ["C1"],
        1: ["A3", "B2"],
        2: ["C1"],
        3: ["A3"],
        4: [],
        5: ["A3"],
        **{plane: [] for plane in range(6, 17)},
    }


def test_the_state_of_a_search_tree_is_small() -> None:
    """Eight boards at 19x19: at most 1.5 KB asked, under 900 bytes here."""
    game = Go(size=19)
    slim = game.search_state(game.init())
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(slim)) == 892


@pytest.mark.parametrize("size", [3, 4])
def test_one_flood_for_all_past_positions_forbids_what_the_loop_forbids(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a TPU runs, run here: in random games on boards so small that positions recur often."""
    game = Go(size=size, komi=0.5, max_moves=80)

    def play(key: jax.Array) -> jax.Array:
        def move(state: GoState, key: jax.Array) -> tuple[GoState, jax.Array]:
            slim = jax.vmap(game.search_state)(state)
            legal = jax.vmap(game.legal_action_mask)(slim)
            points = legal.at[:, -1].set(~legal[:, :-1].any(axis=1))  # it passes only if it must
            draws = jax.random.uniform(key, points.shape)
            action = jnp.argmax(jnp.where(points, draws, -1.0), axis=1).astype(jnp.int32)
            return jax.vmap(game.step)(state, action), legal

        start = jax.vmap(lambda _: game.init())(jnp.arange(64))
        return jax.lax.scan(move, start, jax.random.split(key, 70))[1]

    # Traced anew in every program, with what is patched.
    monkeypatch.setattr(stones, "batch_native", batch_native.__wrapped__)
    key = jax.random.key(0)
    looped = np.asarray(jax.jit(play)(key))
    with monkeypatch.context() as patch:
        patch.setattr(
            jax.lax,
            "platform_dependent",
            lambda *arguments, default, tpu=None, **_: (tpu or default)(*arguments),
        )
        np.testing.assert_array_equal(jax.jit(lambda key: play(key))(key), looped)
    monkeypatch.setattr(stones, "_recreating", lambda _, other, *rest: jnp.zeros_like(other))
    assert (np.asarray(jax.jit(lambda key: play(key))(key)) != looped).any(), "nothing recurs"
