"""Networks of Leela Zero: agreement with its program, files, damage, play."""

import dataclasses
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from leelaz import raw_outputs
from needs import require_program
from untrained import shaken_variables

from azero.checkpoint import load_variables
from azero.checkpoint.exported import write_exported
from azero.games.go.rules import Go
from azero.games.go.settings import GoConfig
from azero.games.go.sgf import read_games
from azero.games.position import Position
from azero.interop.leela import read_leela, read_leela_settings, write_leela
from azero.interop.leela_file import Layout, read_layout, write_numbers
from azero.networks.settings import ConvolutionalConfig, PooledConfig, ResNetConfig
from azero.players.specs import LeelaSpec, load_player, load_thinker, parse_player, resolve
from azero.players.thinking import Limits
from azero.settings import Config
from azero.types import PyTree

GAMES = Path(__file__).parents[1] / "games" / "go" / "data" / "games.sgf.gz"
"""Seven games of 9-dan players."""
SMALL = ResNetConfig(
    blocks=3, filters=8, value_hidden=32, train_dtype="float32", inference_dtype="float32"
)


def network(planes: int = 18, size: int = 19, **changes: object) -> tuple[PyTree, Config]:
    """Return an untrained network whose norms are anything but neutral."""
    config = Config(GoConfig(size=(size,), planes=planes), dataclasses.replace(SMALL, **changes))
    return shaken_variables(config.network.build(config.game.build())), config


def outputs(variables: PyTree, config: Config, planes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return (policy [B, A], value [B]) of a network's fast path, with the convolution that rounds
    least."""
    assert isinstance(config.network, ConvolutionalConfig)
    built = config.network.replace(convolution="xla").build(config.game.build())
    logits, value = jax.jit(lambda v, x: built.infer(built.fold(v), x))(variables, planes)
    return np.asarray(jax.nn.softmax(logits)), np.asarray(value)


def positions(
    most: int,
) -> tuple[list[list[tuple[int, int]]], list[np.ndarray], Callable[[int], np.ndarray]]:
    """Return the first positions of real games: moves, boards, planes by number of planes."""
    games, states = [], []
    rules = Go()
    for record in read_games(GAMES):
        if record.black_points or len(states) >= most:
            continue
        state, moves = rules.host_init(), []
        for colour, action in record.moves[: most - len(states)]:
            facts = rules.host_facts(state)
            if colour != facts.to_play or not facts.legal[action]:
                break
            states.append(state)
            moves.append((colour, action))
            state = rules.host_step(state, action)
        games.append(moves)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *states)

    def planes(count: int) -> np.ndarray:
        return np.asarray(jax.jit(jax.vmap(Go(num_planes=count).observe))(stacked))

    return games, [rules.board(state).ravel() for state in states], planes


def check_agreement(file: Path, network: tuple[PyTree, Config], most: int) -> None:
    """Compare a file in Leela Zero's program with a network of ours on real positions."""
    games, boards, planes = positions(most)
    policies, values = outputs(*network, planes(network[1].game.planes))
    theirs = raw_outputs(file, games)
    assert len(theirs) == len(policies) == most
    assert np.std(values) > 0.01 and np.std(policies) > 1e-4
    for raw, policy, value, board in zip(theirs, policies, values, boards, strict=True):
        shown = np.where(np.append(board != 0, False), 0.0, 1000.0 * policy)
        assert np.all((raw.policy <= shown + 0.01) & (shown < raw.policy + 1.01))
        assert abs(raw.winrate - (1.0 + value) / 2.0) < 2e-5


def test_leelaz_sees_what_we_see(tmp_path: Path) -> None:
    """A network read from its file, one of 17 planes, and one whose value is Black's."""
    file = tmp_path / "ours.txt"
    for planes, colour_plane in ((18, None), (17, None), (17, 16)):
        variables, config = network(planes, colour_plane=colour_plane)
        write_leela(file, variables, config)
        check_agreement(file, (variables, config), 60)
        check_agreement(file, read_leela(file), 60)


@pytest.mark.slow
def test_leelaz_agrees_on_a_thousand_positions(tmp_path: Path) -> None:
    file = tmp_path / "ours.txt"
    for variables, config in (network(18), network(17)):
        write_leela(file, variables, config)
        check_agreement(file, read_leela(file), 1000)


def test_files_come_back(tmp_path: Path) -> None:
    """What is written and read again is the same function, on any board; twice is the same file."""
    planes = np.random.default_rng(2).random((4, 9, 9, 17)) < 0.3
    planes[..., 16] = np.array([True, False, True, False])[:, None, None]
    both = np.concatenate([planes, ~planes[..., 16:]], axis=-1)
    variables, config = network(17, size=9, colour_plane=16)
    first, second = tmp_path / "new" / "first.txt", tmp_path / "second.gz"
    write_leela(first, variables, config)
    read, settings = read_leela(first)
    assert read_leela_settings(first) == settings
    assert read_layout(first) == Layout(2, 2, 8, 9)
    write_leela(second, read, settings)
    assert gzip.decompress(second.read_bytes()).split(b"\n", 1)[0] == b"2"
    expected = outputs(variables, config, planes)
    for file in (first, second):
        for mine, back in zip(expected, outputs(*read_leela(file), both), strict=True):
            np.testing.assert_allclose(mine, back, atol=1e-5)
    once, twice = first.read_text().split("\n"), gzip.decompress(second.read_bytes()).decode()
    for line, again in zip(once, twice.split("\n"), strict=True):
        np.testing.assert_allclose(
            np.array(line.split(), float), np.array(again.split(), float), rtol=2e-6, atol=1e-9
        )


def test_a_trained_network_comes_back(tmp_path: Path) -> None:
    """17 planes and 64 units in the value head become 18 and 256."""
    run = Path(__file__).parents[2] / "experiments" / "go5-komi" / "checkpoint"
    variables, config = load_variables(run)
    planes = np.random.default_rng(2).random((8, 5, 5, 17)) < 0.3
    planes[..., 16] = (np.arange(8) % 2 == 0)[:, None, None]
    file = tmp_path / "five.gz"
    write_leela(file, variables, config)
    read, settings = read_leela(file)
    assert settings.network.value_hidden == 256 and settings.game.planes == 18
    both = np.concatenate([planes, ~planes[..., 16:]], axis=-1)
    expected = outputs(variables, config, planes)
    for mine, back in zip(expected, outputs(read, settings, both), strict=True):
        np.testing.assert_allclose(mine, back, atol=1e-5)


def lines_of(tmp_path: Path) -> list[bytes]:
    file = tmp_path / "whole.txt"
    write_leela(file, *network(18, size=5))
    return file.read_bytes().split(b"\n")[:-1]


def test_damaged_files_give_one_line(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    whole = b"\n".join(lines)
    packed = gzip.compress(whole)
    changed = {
        "number 2 of line 3 is nan": [*lines[:2], b"0 nan" + 6 * b" 0", *lines[3:]],
        "number 1 of line 4 is inf": [*lines[:3], b"1e99" + 7 * b" 0", *lines[4:]],
        "line 4 holds something other than numbers": [*lines[:3], b"one" + 7 * b" 0", *lines[4:]],
        "line 7 has 9 numbers, not 8": [*lines[:6], lines[6] + b" 1", *lines[7:]],
        **{
            f"line {n} has a negative variance": [
                *lines[: n - 1],
                b"-" + lines[n - 1],
                *lines[n:],
            ]
            for n in (5, 21, 25, 31)
        },
        "has 34 lines": lines[:-1],
        "has 36 lines": [*lines, b"0"],
        "line 3 has 0 numbers, not": [*lines[:2], b"", *lines[3:]],
        "not '3'": [b"3", *lines[1:]],
        "not ''": [],
        "line 1 is too long": [b"1" * 100],
        "line 2 is too long": [b"1", b"0 " * 10_000_000],
        "line 8193 is one line too many": [b"1", *[b"0"] * 9000],
    }
    damaged = {problem: b"\n".join(content) for problem, content in changed.items()}
    damaged["cannot be decompressed"] = packed[: len(packed) // 2]
    damaged["line 1 cannot be decompressed"] = packed[:10] + b"\xff" * 100
    damaged["its first line is 1 or 2"] = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    file = tmp_path / "damaged"
    for problem, content in damaged.items():
        file.write_bytes(content)
        with pytest.raises(ValueError) as error:
            read_leela(file)
        assert problem in str(error.value) and "\n" not in str(error.value), problem
    file.write_bytes(whole)
    read_leela(file)


def test_networks_that_leela_zero_does_not_have(tmp_path: Path) -> None:
    variables, config = network(17, size=5)
    for part, problem in (
        ({"network": dataclasses.replace(SMALL, policy_filters=4)}, "policy-filters 2, not 4"),
        ({"network": dataclasses.replace(SMALL, tower="conv")}, "tower res, not conv"),
        ({"network": PooledConfig(blocks=2, filters=8)}, "not pooled for go"),
        ({"game": GoConfig(planes=19)}, "planes 17 or 18, not 19"),
    ):
        with pytest.raises(ValueError, match=problem):
            write_leela(tmp_path / "x", variables, dataclasses.replace(config, **part))
    assert not (tmp_path / "x").exists()


def test_a_file_is_a_player(tmp_path: Path) -> None:
    file = tmp_path / "best.txt.gz"
    write_leela(file, *network(18, size=5))
    spec = parse_player(f"leela:{file}?visits=8&search=alphago_zero")
    assert spec == LeelaSpec(file, visits=8, search="alphago_zero") and spec.name.startswith(
        "leela best, 8"
    )
    assert resolve(spec)[1].game.build().board_shape == (5, 5)
    rules = GoConfig(size=(5,), komi=0.5)
    position = Position.start(rules.build())
    analysis = load_thinker(LeelaSpec(file), rules).think(position, Limits(visits=8))
    assert analysis.visits == 8
    loaded = load_player(LeelaSpec(file, visits=0), rules)
    assert loaded.game.num_planes == 18 and loaded.game.komi == 0.5
    with pytest.raises(ValueError, match="visits=x"):
        parse_player(f"leela:{file}?visits=x")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "azero", *words], capture_output=True, text=True, timeout=300
    )


def test_a_checkpoint_plays_in_leelaz(tmp_path: Path) -> None:
    """Through the command: a network of ours is written, and genmove of leelaz plays with it."""
    program = require_program("leelaz")
    write_exported(tmp_path / "run", *network(17)[:1], 3, network(17)[1])
    file = tmp_path / "ours.gz"
    done = run("checkpoint", str(tmp_path / "run"), "--export-leela", str(file))
    assert (done.returncode, done.stdout.strip()) == (0, str(file)), done.stderr
    words = [program, "--gtp", "--cpu-only", "--noponder", "-t", "1", "-v", "2", "-w", str(file)]
    played = subprocess.run(
        words, input="genmove b\nquit\n", capture_output=True, text=True, timeout=300
    )
    assert played.stdout.startswith("= "), played.stderr[-500:]
    wrong = run("gtp", "--player", f"leela:{tmp_path / 'none'}")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[1:] == [
        f"azero: {tmp_path / 'none'}: No such file or directory"
    ]


FORTY_BLOCKS = """
import sys
from pathlib import Path
from azero.games.position import Position
from azero.players.specs import LeelaSpec, load_thinker
from azero.players.thinking import Limits
player = load_thinker(LeelaSpec(Path(sys.argv[1])))
analysis = player.think(Position.start(player.game), Limits(visits=2))
# Not getrusage: its maximum begins with that of the process which starts this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(analysis.visits, int(peak.split()[1]) >> 10)
"""


@pytest.mark.slow
def test_forty_blocks_of_256_filters_fit_into_memory(tmp_path: Path) -> None:
    """The size of the last networks of Leela Zero: 46.9 million numbers."""
    layout = Layout(1, 40, 256, 19)
    draw = np.random.default_rng(0)
    file = tmp_path / "forty.txt"
    write_numbers(file, 1, (draw.random(n, np.float32) / n**0.5 for n in layout.counts()))
    # On the devices that a user has: every one of these tests' eight would keep a copy.
    environment = {name: v for name, v in os.environ.items() if name != "JAX_NUM_CPU_DEVICES"}
    done = subprocess.run(
        [sys.executable, "-c", FORTY_BLOCKS, str(file)],
        capture_output=True,
        text=True,
        timeout=850,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    visits, megabytes = map(int, done.stdout.split())
    assert visits == 2 and megabytes < 4096
