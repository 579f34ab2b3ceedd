"""Checks of the rules of Go that take minutes: random games against sgfmill, real games, rollouts,
and how often the search's weaker repetition rule matters.

python -m azero.bench.rules random --moves 1000000
python -m azero.bench.rules replay PATH...
python -m azero.bench.rules rollouts [PATH...] --rollouts 10000
python -m azero.bench.rules repetitions --size 9
"""

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from tyro.conf import Positional

from azero.bench.games import draw
from azero.console.terminal import make_console
from azero.games.batching import repeat_state
from azero.games.go.encoding import boards_of
from azero.games.go.replaying import NO_MOVE, broken_rule, replay_moves, start_states
from azero.games.go.rollouts.rollouts import Rollouts, Starts
from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord, read_games
from azero.games.go.state import GoState
from azero.networks.rollout import GROUPS, NUM_GROUPS, init_weights
from azero.types import Array

SIZES = (5, 9, 19)
"""Boards of rollouts from random games."""
GAMES = 32
"""Random games at a time."""


class RandomGames(NamedTuple):
    """Random games as arrays [T, B, ...]."""

    actions: np.ndarray
    boards: np.ndarray
    """int8[T, B, N]: after the move, 1 Black, -1 White"""
    is_over: np.ndarray
    """bool[T, B]: the game ended with this move; the next one begins on an empty board"""
    scores: np.ndarray
    """float32[T, B]: Black's area minus White's, after the move"""
    num_weaker: np.ndarray
    """int32[T, B]: moves that the search state allows and the exact rule forbids, before the
    move"""
    num_legal: np.ndarray
    """int32[T, B]: legal points, before the move"""


def play_random(game: Go, num_games: int, num_moves: int, seed: int) -> RandomGames:
    """Play `num_games` games in parallel for `num_moves` random legal moves, over and over."""

    def move(state: GoState, word: Array) -> tuple[GoState, tuple[Array, ...]]:
        exact = game.legal_action_mask(state)
        slim = game.legal_action_mask(game.search_state(state))
        action = draw(exact, word)
        state = game.step(state, action)
        is_over = game.is_terminal(state)
        fresh = jax.tree.map(lambda new, old: jnp.where(is_over, new, old), game.init(), state)
        weaker = (slim & ~exact).sum(dtype=jnp.int32)
        return fresh, (
            action,
            state.frames[0],
            is_over,
            game.score(state),
            weaker,
            exact[:-1].sum(dtype=jnp.int32),
        )

    @jax.jit
    def play(key: Array) -> tuple[Array, ...]:
        states = repeat_state(game.init(), num_games)
        words = jax.random.bits(key, (num_moves, num_games))
        return jax.lax.scan(jax.vmap(move), states, words)[1]

    actions, frames, is_over, scores, weaker, num_legal = map(
        np.asarray, play(jax.random.key(seed))
    )
    return RandomGames(
        actions, boards_of(frames, game.num_points), is_over, scores, weaker, num_legal
    )


def compare_with_sgfmill(size: int, games: RandomGames, komi: float) -> int:
    """Play the games on sgfmill's board and compare every position, and the area of every final
    one. Return the number of moves compared.

    Raises:
      AssertionError: a board or an area differs; the size, the game and the move are named.
    """
    from sgfmill import boards

    for game in range(games.actions.shape[1]):
        board, colour = boards.Board(size), "b"
        for index, action in enumerate(games.actions[:, game].tolist()):
            if action < size * size:
                # Rows are mirrored, which no rule sees.
                board.play(*divmod(action, size), colour)
            place = f"{size}x{size} game {game} move {index}"
            assert games.boards[index, game].tolist() == _cells(board), (
                f"{place}: the boards differ"
            )
            colour = "w" if colour == "b" else "b"
            if games.is_over[index, game]:
                assert board.area_score() - komi == games.scores[index, game], (
                    f"{place}: the areas differ"
                )
                board, colour = boards.Board(size), "b"
    return games.actions.size


def _cells(board: Any) -> list[int]:
    """Return the points of sgfmill's board, row by row: 1 Black, -1 White, 0 empty."""
    return [{"b": 1, "w": -1, None: 0}[cell] for row in board.board for cell in row]


def check_random(
    moves: int = 1_000_000, sizes: tuple[int, ...] = tuple(range(2, 20)), seed: int = 0
) -> Iterator[str]:
    """Compare about `moves` random moves, spread over `sizes`, with sgfmill; yield a line for every
    size."""
    plies = -(-moves // (len(sizes) * GAMES))
    total = 0
    for size in sizes:
        game = Go(size=size, komi=0.5)
        total += compare_with_sgfmill(size, play_random(game, GAMES, plies, seed + size), game.komi)
        jax.clear_caches()
        yield f"{size}x{size}: equal; {total} moves in all"


class Violation(NamedTuple):
    """A move of a real game that the rules forbid."""

    name: str
    move: int
    """counted from 1"""
    rule: str


def replay(
    records: Iterable[GameRecord], batch: int = 256
) -> Iterator[tuple[GameRecord, np.ndarray, list[Violation]]]:
    """Replay games and yield each with its final board int8[N] and what broke a rule (positional
    superko, no suicide).

    A forbidden move is noted and left out if its point is taken, else played all the same; a move
    out of turn is noted and played by its owner.
    """
    for shape, group in itertools.groupby(records, key=lambda record: record.board_shape):
        while chunk := list(itertools.islice(group, batch)):
            yield from _replay_chunk(shape, chunk, batch)


def _replay_chunk(
    shape: tuple[int, int], records: list[GameRecord], batch: int
) -> Iterator[tuple[GameRecord, np.ndarray, list[Violation]]]:
    longest = max(1, *(len(record.moves) for record in records))
    length = -(-longest // 128) * 128  # few lengths, few compilations
    game = Go(size=shape, max_moves=length + 1)
    actions, colours = np.full((2, length, batch), NO_MOVE, np.int32)
    for column, record in enumerate(records):
        if record.moves:
            colours[: len(record.moves), column], actions[: len(record.moves), column] = np.array(
                record.moves
            ).T
    states = start_states(game, records, batch)
    _, legal, in_turn, frames = jax.tree.map(
        np.asarray, replay_moves(game, states, actions, colours)
    )
    first = boards_of(np.asarray(states.frames[:, 0]), game.num_points)
    boards = np.concatenate([first[None], boards_of(frames, game.num_points)])
    for column, record in enumerate(records):
        end = len(record.moves)
        violations = []
        for index in np.flatnonzero(~(legal & in_turn)[:end, column]).tolist():
            rule = (
                broken_rule(game, boards[: index + 1, column], *record.moves[index])
                if not legal[index, column]
                else "played out of turn"
            )
            violations.append(Violation(record.name, index + 1, rule))
        yield record, boards[end, column], violations


def compare_final_board(record: GameRecord, board: np.ndarray) -> bool:
    """Return whether sgfmill's board at the end of the game is `board` int8[N]."""
    from sgfmill import boards

    theirs = boards.Board(record.size)
    theirs.apply_setup(
        *[
            [divmod(point, record.size) for point in points]
            for points in (record.black_points, record.white_points, ())
        ]
    )
    for colour, action in record.moves:
        if action < record.size**2:
            theirs.play(*divmod(action, record.size), "bw"[colour])
    return _cells(theirs) == board.tolist()


def check_records(paths: Positional[tuple[Path, ...]]) -> Iterator[str]:
    """Replay every game of the files; yield a line for every violation and one for every file."""
    if not paths:
        raise SystemExit("replay: give at least one file of games")
    for path in paths:
        num_games = num_moves = num_clean = num_equal = 0
        rules: Counter[str] = Counter()
        for record, board, violations in replay(read_games(path)):
            num_games, num_moves = num_games + 1, num_moves + len(record.moves)
            rules.update(violation.rule.split(" the position")[0] for violation in violations)
            yield from (
                f"{violation.name}: move {violation.move} {violation.rule}"
                for violation in violations
            )
            if not violations:
                num_clean, num_equal = num_clean + 1, num_equal + compare_final_board(record, board)
        broken = ", ".join(f"{rule}: {count}" for rule, count in rules.items()) or "none"
        yield (
            f"{path.name}: {num_games} games, {num_moves} moves; {num_equal} of {num_clean} final "
            f"boards equal sgfmill's; moves that break a rule: {broken}"
        )


class RolloutMoves(NamedTuple):
    """The verdict of sgfmill on rollouts."""

    rollouts: int
    moves: int
    """stones played, in all rollouts"""
    illegal: list[str]
    """a line for every rollout with an illegal move"""
    illegal_first: int
    """rollouts whose first move is illegal"""


def compare_rollouts(size: int, games: Sequence[Sequence[int]], num_rollouts: int) -> RolloutMoves:
    """Play `num_rollouts` rollouts of a uniform policy from positions of games in which a ko may
    not be taken back, and their moves on sgfmill's board; a position serves several times where
    there are fewer. `games` are the actions of each, Black's and White's in turn from the empty
    board.

    Raises:
      ValueError: no ko was captured in the games.
    """
    game = Go(size=size, superko="simple", max_moves=max(map(len, games)) + 1)
    kos = [
        (column, ply)
        for column, actions in enumerate(games)
        for ply, (_, _, ko) in enumerate(_sgfmill_positions(size, actions))
        if ko
    ]
    if not kos:
        raise ValueError(f"no ko was captured in the {len(games)} games")
    rng = np.random.default_rng(0)
    chosen = sorted(kos[index] for index in rng.integers(len(kos), size=num_rollouts))
    points = _rollout_points(game, games, chosen)
    illegal, moves, illegal_first = [], 0, 0
    for column, group in itertools.groupby(range(len(chosen)), key=lambda index: chosen[index][0]):
        positions = list(_sgfmill_positions(size, games[column]))
        for index in group:
            board, colour, ko = positions[chosen[index][1]]
            played, problem = _play_on(board.copy(), colour, ko, points[index].tolist())
            moves += played
            if problem:
                illegal.append(
                    f"{size}x{size} game {column}, position {chosen[index][1]}, move "
                    f"{played} of the rollout: {problem}"
                )
                illegal_first += played == 1
    return RolloutMoves(len(chosen), moves, illegal, illegal_first)


def _sgfmill_positions(
    size: int, actions: Sequence[int]
) -> Iterator[tuple[Any, str, tuple[int, int] | None]]:
    """Yield sgfmill's board before each of the actions and after the last one, who is to move, and
    the point that ko forbids."""
    from sgfmill import boards

    board, colour, ko = boards.Board(size), "b", None
    yield board, colour, ko
    for action in actions:
        board = board.copy()
        ko = board.play(*divmod(action, size), colour) if action < size * size else None
        colour = "w" if colour == "b" else "b"
        yield board, colour, ko


def _play_on(
    board: Any, colour: str, ko: tuple[int, int] | None, points: list[int]
) -> tuple[int, str]:
    """Play points (N a pass) on sgfmill's board; return the number of stones played, the forbidden
    one included, and what is wrong with it."""
    played = 0
    for action in points:
        if action < board.side**2:
            point, played = divmod(action, board.side), played + 1
            if board.get(*point) is not None:
                return played, "the point is taken"
            if point == ko:
                return played, "it takes a ko back"
            ko = board.play(*point, colour)
            if board.get(*point) is None:
                return played, "suicide"
        else:
            ko = None
        colour = "w" if colour == "b" else "b"
    return played, ""


def _rollout_points(
    game: Go, games: Sequence[Sequence[int]], chosen: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return int[R, T]: the moves of one rollout from each of the positions `chosen` (game, actions
    before it), N for a pass and after the end."""
    # a position before each, the last one of the longest game too
    actions = np.full((game.max_moves, len(games)), game.num_points, np.int32)
    for column, moves in enumerate(games):
        actions[: len(moves), column] = moves

    @jax.jit
    def positions(actions: Array) -> GoState:
        first = repeat_state(game.init(), len(games))
        return jax.lax.scan(
            lambda states, chosen: (jax.vmap(game.step)(states, chosen), states), first, actions
        )[1]

    columns, plies = np.array(chosen).T
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[plies, columns], positions(actions))
    even = init_weights(GROUPS[: NUM_GROUPS["rollout2016"]], pattern_bits=4)
    rollouts = Rollouts(game.board_shape, even)
    return rollouts.begin(Starts.of(states, game.num_points))().moves[:, 1:]


def check_rollouts(
    paths: Positional[tuple[Path, ...]] = (), rollouts: int = 10_000
) -> Iterator[str]:
    """Play rollouts from positions after ko captures, of the games in files or, without any, of
    random games on boards of SIZES; yield a line for each board and file."""
    for path in paths:
        alternating = [
            record
            for record in read_games(path)
            if not record.black_points
            and not record.white_points
            and all(colour == index % 2 for index, (colour, _) in enumerate(record.moves))
        ]
        by_size = operator.attrgetter("size")
        for size, group in itertools.groupby(sorted(alternating, key=by_size), key=by_size):
            games = [[action for _, action in record.moves] for record in group if record.moves]
            yield (
                f"{path.name}, {size}x{size}: "
                f"{_describe(compare_rollouts(size, games[:512], rollouts))}"
            )
    if not paths:
        for size in SIZES:
            games = random_games(size, GAMES, seed=0)
            compared = compare_rollouts(size, games, -(-rollouts // len(SIZES)))
            yield f"random games, {size}x{size}: {_describe(compared)}"


def random_games(size: int | tuple[int, int], num_games: int, seed: int) -> list[list[int]]:
    """Return the actions of random games, each to its end, but at most three moves a point."""
    game = Go(size=size, superko="simple")
    games = play_random(game, num_games, 3 * game.num_points, seed)
    ends = np.where(games.is_over.any(axis=0), games.is_over.argmax(axis=0), len(games.is_over) - 1)
    return [games.actions[:end, column].tolist() for column, end in enumerate(ends)]


def _describe(found: RolloutMoves) -> str:
    lines = "".join(f"\n  {line}" for line in found.illegal[:10])
    return (
        f"{found.rollouts} rollouts from positions after a ko capture, {found.moves} "
        f"moves; rollouts with a forbidden move: {len(found.illegal)}, as their first one: "
        f"{found.illegal_first}{lines}"
    )


def count_repetitions(size: int = 9) -> Iterator[str]:
    """Yield a line that says how often the search's rule (eight boards) allows what the exact rule
    forbids, in random play."""
    games = play_random(Go(size=size), num_games=128, num_moves=600, seed=0)
    weaker = games.num_weaker
    yield (
        f"{size}x{size}: in {int((weaker > 0).sum())} of {weaker.size} positions the search "
        f"may repeat an older one; "
        f"{int(weaker.sum())} such moves and {int(games.num_legal.sum())} legal ones"
    )


def main(arguments: list[str] | None = None) -> None:
    """Run one of the checks and print its lines."""
    checks: dict[str, Callable[..., Iterator[str]]] = {
        "random": check_random,
        "replay": check_records,
        "rollouts": check_rollouts,
        "repetitions": count_repetitions,
    }
    prog = "python -m azero.bench.rules"
    lines: Iterator[str] = tyro.extras.subcommand_cli_from_dict(
        checks, prog=prog, description=__doc__, args=arguments
    )
    console = make_console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)


if __name__ == "__main__":
    main()
