"""AlphaGo's planes of 2016 in plain Python, written from the table of the paper and the decisions
in `azero.games.go.alphago2016.features`; slow and simple."""

import sys
from typing import NamedTuple

import numpy as np

from azero.games.go.alphago2016.ladders import NODE_LIMIT, STACK_LIMIT
from azero.games.go.encoding import boards_of
from azero.games.go.setup import chains

sys.setrecursionlimit(10_000)
"""Long ladders take several calls a move."""


class Layer(NamedTuple):
    """A feature's planes."""

    name: str
    first: int
    size: int


LAYERS = (
    Layer("stone colour", 0, 3),
    Layer("ones", 3, 1),
    Layer("turns since", 4, 8),
    Layer("liberties", 12, 8),
    Layer("capture size", 20, 8),
    Layer("self-atari size", 28, 8),
    Layer("liberties after move", 36, 8),
    Layer("ladder capture", 44, 1),
    Layer("ladder escape", 45, 1),
    Layer("sensibleness", 46, 1),
    Layer("zeros", 47, 1),
    Layer("player colour", 48, 1),
)
"""AG16 Extended Data Table 2."""


def around(point, shape):
    row, column = point
    near = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
    return [(r, c) for r, c in near if 0 <= r < shape[0] and 0 <= c < shape[1]]


def chain_of(board, point):
    """Return the chain at a point and its liberties, two sets of points."""
    chain, liberties, todo = {point}, set(), [point]
    while todo:
        for other in around(todo.pop(), board.shape):
            if board[other] == 0:
                liberties.add(other)
            elif board[other] == board[point] and other not in chain:
                chain.add(other)
                todo.append(other)
    return chain, liberties


def play(board, point, colour):
    """Return the board after a stone, what it captured, and its own chain and liberties."""
    board = board.copy()
    board[point] = colour
    captured = set()
    for other in around(point, board.shape):
        if board[other] == -colour:
            chain, liberties = chain_of(board, other)
            if not liberties:
                captured |= chain
    for taken in captured:
        board[taken] = 0
    return board, captured, *chain_of(board, point)


class Budget(Exception):
    pass


class Ladder:
    """Reads one ladder after its first move."""

    def __init__(self, prey, prey_colour):
        self.prey, self.colour, self.nodes = prey, prey_colour, 0

    def catches(self, board, move):
        return self.read(self.hunt, board, move, False)

    def saves(self, board, move):
        return self.read(self.run, board, move, True)

    def read(self, how, board, move, undecided):
        try:
            return how(board, move, 0)
        except Budget:
            return undecided

    def hunt(self, board, move, stack_size):
        """Play the hunter's move; return whether the prey is caught."""
        board, captured, chain, liberties = play(board, move, -self.colour)
        if stack_size >= STACK_LIMIT:
            raise Budget
        prey, last = chain_of(board, self.prey)
        answers = set(last)
        for stone in prey:
            for other in around(stone, board.shape):
                if board[other] == -self.colour:
                    _, breath = chain_of(board, other)
                    answers |= breath if len(breath) == 1 else set()
        answers = self.allowed(board, answers, self.colour, captured, chain, liberties)
        return self.all_fail(self.run, board, answers, stack_size)

    def run(self, board, move, stack_size):
        """Play the prey's move; return whether it escapes."""
        board, captured, chain, liberties = play(board, move, self.colour)
        _, breath = chain_of(board, self.prey)
        if stack_size >= STACK_LIMIT:
            raise Budget
        if len(breath) != 2:
            return len(breath) > 2
        moves = self.allowed(board, breath, -self.colour, captured, chain, liberties)
        return self.all_fail(self.hunt, board, moves, stack_size)

    def all_fail(self, read, board, moves, stack_size):
        # A loop, because Python 3.12 allows only 1,500 calls through its own any().
        for index, move in enumerate(moves):
            self.nodes += 1
            if self.nodes >= NODE_LIMIT:
                raise Budget
            if read(board, move, stack_size + (index < len(moves) - 1)):
                return False
        return True

    def allowed(self, board, moves, colour, captured, chain, liberties):
        """Return the moves in order that are no suicide and do not take a ko back at once."""
        ko = captured if len(captured) == len(chain) == len(liberties) == 1 else set()
        return [move for move in sorted(moves - ko) if play(board, move, colour)[3]]


def legal_points(boards, to_play, superko_ages=range(8)):
    """Return the legal points, without suicide and without repeating one of the eight boards
    (newest first)."""
    board, legal = boards[0], set()
    for point in zip(*(side.tolist() for side in np.nonzero(board == 0)), strict=True):
        after, _, _, liberties = play(board, point, to_play)
        if liberties and not any((after == boards[age]).all() for age in superko_ages):
            legal.add(point)
    return legal


def is_eye(board, point, colour):
    """Return whether an empty point is an eye of `colour`."""
    if any(board[other] != colour for other in around(point, board.shape)):
        return False
    row, column = point
    corners = [(row + r, column + c) for r in (-1, 1) for c in (-1, 1)]
    inside = [
        corner
        for corner in corners
        if 0 <= corner[0] < board.shape[0] and 0 <= corner[1] < board.shape[1]
    ]
    bad = sum(board[corner] == -colour for corner in inside)
    return bad <= (1 if len(inside) == 4 else 0)


def planes_of(boards, to_play):
    """Return planes bool[H, W, 49] of boards int8[8, H, W], newest first (1 Black, -1 White), with
    `to_play` 1 or -1 to move."""
    board = boards[0]
    planes = np.zeros((*board.shape, 49), bool)
    planes[:, :, 0], planes[:, :, 1], planes[:, :, 2], planes[:, :, 3] = (
        board == to_play,
        board == -to_play,
        board == 0,
        True,
    )
    planes[:, :, 48] = to_play == 1
    for point in zip(*(side.tolist() for side in np.nonzero(board)), strict=True):
        age = next((k for k in range(1, 8) if boards[k][point] != board[point]), 8)
        planes[(*point, 4 + age - 1)] = True
    preys = []
    for chain, liberties in chains(board):
        for point in chain:
            planes[(*point, 12 + min(len(liberties), 8) - 1)] = True
        colour = board[next(iter(chain))]
        if (colour == to_play and len(liberties) == 1) or (
            colour == -to_play and len(liberties) == 2
        ):
            preys.append((min(chain), colour, chain, liberties))
    legal = legal_points(boards, to_play)
    for point in legal:
        _, captured, chain, liberties = play(board, point, to_play)
        planes[(*point, 20 + min(len(captured), 7))] = True
        if len(liberties) == 1:
            planes[(*point, 28 + min(len(chain), 8) - 1)] = True
        planes[(*point, 36 + min(len(liberties), 8) - 1)] = True
        planes[(*point, 46)] = not is_eye(board, point, to_play)
    for prey, colour, chain, liberties in preys:
        if colour == -to_play:
            for move in liberties & legal:
                planes[(*move, 44)] |= Ladder(prey, colour).catches(board, move)
            continue
        moves = set(liberties)
        for stone in chain:
            for other in around(stone, board.shape):
                if board[other] == -to_play and len(breath := chain_of(board, other)[1]) == 1:
                    moves |= breath
        for move in moves & legal:
            planes[(*move, 45)] |= Ladder(prey, colour).saves(board, move)
    return planes


def assert_equal(planes, frames, to_play, game):
    """Compare planes bool[B, H, W, 49] with those of the plain version."""
    boards = boards_of(frames, game.num_points).reshape(len(frames), 8, *game.board_shape)
    for index, history in enumerate(boards):
        expected = planes_of(history, 1 - 2 * int(to_play[index]))
        wrong = [
            layer.name
            for layer in LAYERS
            if (planes[index] != expected)[:, :, layer.first : layer.first + layer.size].any()
        ]
        assert not wrong, f"position {index}: {', '.join(wrong)}\n{history[0]}"
