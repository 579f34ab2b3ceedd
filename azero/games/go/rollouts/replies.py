"""Last good replies in rollouts: a side answers a move as in the last game that it won, if that is
legal, and otherwise draws from the policy.

Source: Drake 2009 (ICGA Journal 32); a reply of a lost game is removed (Baier and Drake 2010, IEEE
Transactions on Computational Intelligence and AI in Games 2). AG16 methods, 'Rollout policy', has a
cache of this kind, filled by the tree and keyed on the 3x3 points around both moves. The games of a
batch share one table, which is updated from all of them when they are over.
"""

import numpy as np

from azero.games.go.rollouts.board import compile_function


def no_replies(num_points: int) -> np.ndarray:
    """Return the empty table int32[2, N + 1]: by colour of the side that replies and point of the
    previous move, 1 + the point of the reply, or 0 for none."""
    return np.zeros((2, num_points + 1), np.int32)


@compile_function
def learn_replies(
    table: np.ndarray, moves: np.ndarray, to_play: np.ndarray, results: np.ndarray
) -> np.ndarray:
    """Return the table updated from games.

    All games are processed move by move together: the replies of losing sides are deleted from the
    table, then those of winning sides are stored; of several games the last one counts.

    Args:
      table: see `no_replies`.
      moves: int32[B, 1 + T], the move before the games and their moves; N for a pass, and after the
        end.
      to_play: int64[B], the side of the first of them.
      results: int32[B], 1 where Black won, -1 where White did, 0 for a draw, which changes nothing.
    """
    table, none = table.copy(), table.shape[1] - 1
    for ply in range(moves.shape[1] - 1):
        for sign in (-1, 1):
            for game in range(len(moves)):
                before, point = moves[game, ply], moves[game, ply + 1]
                colour = (to_play[game] + ply) % 2
                gain = results[game] if colour == 0 else -results[game]
                if gain != sign or before == none or point == none:
                    continue
                if gain > 0:
                    table[colour, before] = point + 1
                elif table[colour, before] == point + 1:
                    table[colour, before] = 0
    return table
