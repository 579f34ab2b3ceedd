"""A process that speaks UCI or USI around a thinker that knows nothing: `python moves_process.py
chess|shogi`."""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from uniform_thinker import UniformThinker

from azero.engines.background import Background
from azero.engines.lines import LineReader, LineWriter, standard_streams
from azero.engines.pieces_game import PiecesGame
from azero.engines.uci.dialects import UCI, USI
from azero.engines.uci.engine import UciEngine
from azero.games.table import make

if __name__ == "__main__":
    stdin, stdout = standard_streams()

    def load(give: Callable[[PiecesGame], None]) -> None:
        game = PiecesGame(
            make(sys.argv[1]), lambda game: UniformThinker(game, expects_pass=False, draw=0.25)
        )
        game.begin_to_prepare()
        give(game)

    UciEngine(
        {"chess": UCI, "shogi": USI}[sys.argv[1]],
        Background(load),
        LineReader(stdin),
        LineWriter(stdout),
        visits=4,
        has_draws=True,
    ).run()
