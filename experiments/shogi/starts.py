"""Write the positions from which games of `shogi_efficient` start: half of them the usual one, half
from random games, 1 to 40 moves before their mates, where an untrained network meets results.

    python experiments/shogi/starts.py starts.txt
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.shogi.rules import ENDINGS, Shogi
from azero.games.shogi.sfen import START
from azero.games.shogi.text import ShogiBoard, format_sfen

GAMES = 2048
POSITIONS = 12_000
MOST_BEFORE_MATE = 40
SHOGI = Shogi()


@jax.jit
def play_random_games(key):
    """Return the positions uint32[512, GAMES, 18] before each move, whether the game was over then,
    and how each game ended."""

    def play(states, key):
        over = jax.vmap(SHOGI.is_terminal)(states)
        logits = jnp.where(jax.vmap(SHOGI.legal_action_mask)(states), 0.0, -jnp.inf)
        after = jax.vmap(SHOGI.step)(states, jax.random.categorical(key, logits))
        return after, (states.frames[:, 0], over)

    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (GAMES, *leaf.shape)), SHOGI.init())
    last, (frames, over) = jax.lax.scan(play, start, jax.random.split(key, SHOGI.max_moves))
    return frames, over, last.ending


def main(path: Path) -> None:
    """Write the file."""
    frames, over, ending = map(np.asarray, play_random_games(jax.random.key(0)))
    length = (~over).sum(axis=0)
    mated = np.flatnonzero(ending == ENDINGS.index("checkmate"))
    print(f"{len(mated)} of {GAMES} games end with mate, after {length[mated].mean():.0f} moves")
    rng = np.random.default_rng(0)
    lines = set()
    while len(lines) < POSITIONS:
        game = rng.choice(mated)
        frame = frames[max(0, length[game] - rng.integers(1, MOST_BEFORE_MATE + 1)), game]
        lines.add(format_sfen(ShogiBoard(tuple(frame.reshape(-1, 1)))))
    path.write_text("\n".join([*sorted(lines), *[START] * len(lines)]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
