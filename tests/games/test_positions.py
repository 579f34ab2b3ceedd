"""Positions that games begin with: from lines of text, from a file, and in self-play."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero import mesh as mesh_lib
from azero.games.positions import read_positions
from azero.games.table import make
from azero.search.search import SearchOutput
from azero.selfplay.selfplay import make_selfplay
from azero.selfplay.settings import SelfplayConfig

LINES = {
    "chess": [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "8/8/8/8/k7/2K5/8/1R6 b - - 12 40",
        "4k3/8/8/8/4Pp2/8/8/4K3 b - e3 0 9",
    ],
    "minichess": ["rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1", "3k1/P4/5/4p/K4 b - - 7 20"],
    "shogi": [
        "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1",
        "4k4/9/4P4/9/9/9/9/9/4K4 w G2r 34",
    ],
    "animal_shogi": ["gle/1c1/1C1/ELG b - 1", "gl1/3/3/1L1 b 2c2eG 3", "1l1/+C2/3/1L1 w 2Ge 2"],
}


@pytest.mark.parametrize("name", LINES)
def test_many_positions_are_those_of_single_ones(name: str) -> None:
    option = "fen" if "chess" in name else "sfen"
    states = make(name).from_positions(LINES[name])
    for number, line in enumerate(LINES[name]):
        jax.tree.map(
            lambda many, one, n=number: np.testing.assert_array_equal(many[n], one),
            states,
            make(name, **{option: line}).init(),
        )


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("number", range(4))
def test_a_long_wrong_position_is_quoted_shortened(name: str, number: int) -> None:
    fields = LINES[name][0].split()
    fields[number] = "x" * 10_000
    with pytest.raises(ValueError, match="position") as caught:
        make(name).from_positions([" ".join(fields)])
    assert len(str(caught.value)) < 1000


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "positions.txt"
    lines = LINES["animal_shogi"]
    path.write_text("# two beginnings\n" + "\n\n".join([*lines, lines[1]]) + "\n")
    read, states = read_positions(make("animal_shogi"), path)
    assert read == [*lines, lines[1]]
    assert states.frames.shape == (4, 8, 3)
    expected = make("animal_shogi").from_positions([*lines, lines[1]])
    jax.tree.map(np.testing.assert_array_equal, states, expected)
    path.write_bytes(b"\xef\xbb\xbf" + lines[1].encode())
    assert read_positions(make("animal_shogi"), path)[0] == [lines[1]]


def test_a_file_in_epd(tmp_path: Path) -> None:
    position = "r1bqkbnr/pp1ppppp/2n5/2p5/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq -"
    path = tmp_path / "openings.epd"
    operations = ["", " hmvc 2; fmvn 3;", ' bm Bb5 d4; id "Sicilian"; fmvn 3;', " 2 3 c0 book;"]
    path.write_text("".join(f"{position}{words}\n" for words in operations))
    lines, states = read_positions(make("chess"), path)
    assert lines == [position, *(f"{position} {counts}" for counts in ("2 3", "0 3", "2 3"))]
    expected = make("chess").from_positions(
        [f"{position} {c}" for c in ("0 1", "2 3", "0 3", "2 3")]
    )
    jax.tree.map(np.testing.assert_array_equal, states, expected)
    path.write_text(f"{position} bm Bb5")
    with pytest.raises(ValueError, match=r"line 1: .*half-move clock"):
        read_positions(make("chess"), path)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "animal_shogi",
            "gle/1c1/1C1/ELG b - 1\n\ngle/1c1/1C1 b - 1\n",
            "line 3: 'gle/1c1/1C1 b - 1' is not a position of animal shogi in SFEN: there "
            "are 3 ranks",
        ),
        (
            "chess",
            "8/8/8/8/8/k1K5/8/8 w - - 0 1\n",
            "line 1: in '8/8/8/8/8/k1K5/8/8 w - - 0 1' the game is already over",
        ),
        ("chess", "# nothing\n", "holds no start position"),
        (
            "go",
            "",
            "start positions can be given for chess, minichess, shogi and animal_shogi, not for go",
        ),
    ],
)
def test_bad_files(name: str, content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "positions.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=reason):
        read_positions(make(name), path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read the start positions in .*nowhere\.txt"):
        read_positions(make("chess"), tmp_path / "nowhere.txt")


def test_self_play_begins_with_a_position_of_the_file() -> None:
    """Games are drawn with the key, at first and whenever one ends; the same key draws the same."""
    game = make("animal_shogi", max_moves=3)
    starts = jax.tree.map(jnp.asarray, game.from_positions(LINES["animal_shogi"][:2]))

    def first_move(params, key, roots):
        legal = jax.vmap(game.legal_action_mask)(roots)
        value = jnp.zeros(legal.shape[0], jnp.float32)
        return SearchOutput(
            jnp.argmax(legal, -1).astype(jnp.int32),
            legal / legal.sum(-1, keepdims=True),
            legal.astype(jnp.int32),
            value,
            value,
            None,
        )

    config = SelfplayConfig(num_games=32, moves_per_dispatch=3, temperature_moves=0, resign=False)
    selfplay = make_selfplay(config, game, first_move, None, mesh_lib.make_mesh(jax.devices()[:1]))
    known = {np.asarray(frame).tobytes() for frame in starts.frames[:, 0]}

    def drawn(key: int) -> list[bytes]:
        carry = selfplay.init(jax.random.key(key), starts)
        begun = [np.asarray(frame).tobytes() for frame in carry.states.frames[:, 0]]
        carry, step = selfplay.play({}, carry, jax.random.key(key), jnp.float32(-1.0), starts)
        assert np.asarray(step.finished)[-1].all(), "no game is longer than three moves"
        again = [
            np.asarray(frame).tobytes()
            for frame, ply in zip(carry.states.frames[:, 0], carry.ply, strict=True)
            if ply == 0
        ]
        assert len(again) == 32
        return begun + again

    assert set(drawn(1)) == known
    assert drawn(1) == drawn(1) != drawn(2)
