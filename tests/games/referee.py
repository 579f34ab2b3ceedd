"""A plain Python Go referee, slow and obvious: sets of points, the whole history, no trick shared
with azero."""

from __future__ import annotations

Board = tuple[int, ...]


class Referee:
    """Go by the definitions: copy the board, remove what has no liberty, look into the history."""

    def __init__(
        self,
        height: int,
        width: int,
        superko: str = "positional",
        suicide: bool = False,
        board: Board | None = None,
        to_play: int = 0,
    ) -> None:
        self.height, self.width, self.superko, self.suicide = height, width, superko, suicide
        self.board: Board = board if board is not None else (0,) * (height * width)
        self.to_play = to_play
        self.history: list[tuple[Board, int]] = [(self.board, to_play)]

    def around(self, point: int) -> list[int]:
        row, column = divmod(point, self.width)
        options = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        return [
            r * self.width + c for r, c in options if 0 <= r < self.height and 0 <= c < self.width
        ]

    def chain(self, board: list[int] | Board, point: int) -> tuple[set[int], set[int]]:
        """The points of the same colour connected to `point`, and what touches them of another
        colour or emptiness."""
        chain, border, todo = {point}, set(), [point]
        while todo:
            for near in self.around(todo.pop()):
                if board[near] != board[point]:
                    border.add(near)
                elif near not in chain:
                    chain.add(near)
                    todo.append(near)
        return chain, border

    def result_of(self, point: int) -> Board | None:
        """The board after a stone of the side to move; None if the point is taken or the move is a
        forbidden suicide."""
        if self.board[point]:
            return None
        own = 1 if self.to_play == 0 else -1
        board = list(self.board)
        board[point] = own
        for near in self.around(point):
            if board[near] == -own:
                chain, border = self.chain(board, near)
                if all(board[p] for p in border):
                    for p in chain:
                        board[p] = 0
        chain, border = self.chain(board, point)
        if all(board[p] for p in border):
            if not self.suicide:
                return None
            for p in chain:
                board[p] = 0
        return tuple(board)

    def is_legal(self, point: int, window: int | None = None) -> bool:
        """Whether a stone may be played; `window` limits the memory to so many positions."""
        board = self.result_of(point)
        if board is None:
            return False
        history = self.history[-window:] if window else self.history
        if self.superko == "positional":
            return all(board != past for past, _ in history)
        if self.superko == "situational":
            return (board, 1 - self.to_play) not in history
        return board != self.board and (len(history) < 2 or board != history[-2][0])

    def legal(self, window: int | None = None) -> list[bool]:
        return [self.is_legal(point, window) for point in range(self.height * self.width)] + [True]

    def play(self, action: int) -> None:
        if action < self.height * self.width:
            board = self.result_of(action)
            assert board is not None
            self.board = board
        self.to_play = 1 - self.to_play
        self.history.append((self.board, self.to_play))

    def area(self) -> int:
        """Black's area minus White's: every empty region counts for the only colour it touches."""
        total = sum(self.board)
        seen: set[int] = set()
        for point, value in enumerate(self.board):
            if value == 0 and point not in seen:
                region, border = self.chain(self.board, point)
                seen |= region
                colours = {self.board[p] for p in border}
                if len(colours) == 1:
                    total += len(region) * colours.pop()
        return total
