"""A UCI or USI engine in this process, around a thinker that knows nothing."""

import io

from uniform_thinker import UniformThinker

from azero.engines.lines import InputLine, LineWriter
from azero.engines.pieces_game import PiecesGame
from azero.engines.uci.dialects import UCI, USI
from azero.engines.uci.engine import LONGEST_LINE, UciEngine
from azero.games.table import make


class _Script:
    """Lines that wait, and the end of the input behind them."""

    def __init__(self) -> None:
        self.lines: list[InputLine] = []

    def is_waiting(self) -> bool:
        return True

    def take(self) -> InputLine | None:
        return self.lines.pop(0) if self.lines else None


class MovesInProcess:
    """Ask in bytes, get the answer as text. A question may be several lines: the later ones come
    while the first one is carried out."""

    def __init__(
        self,
        game: str,
        *,
        value: float = 0.0,
        draw: float | None = None,
        visits: int | None = 30,
        **options: int,
    ) -> None:
        self.thinkers: list[UniformThinker] = []
        self.value, self.draw = value, draw
        self._script = _Script()
        self._sink = io.BytesIO()
        self.game = PiecesGame(make(game, **options), self._make)
        self.engine = UciEngine(
            USI if game == "shogi" else UCI,
            self.game,
            self._script,
            LineWriter(self._sink),
            visits=visits,
            has_draws=draw is not None,
        )

    def _make(self, game) -> UniformThinker:
        self.thinkers.append(UniformThinker(game, self.value, expects_pass=False, draw=self.draw))
        return self.thinkers[-1]

    def ask(self, question: bytes | str) -> str:
        raw = question.encode() if isinstance(question, str) else question
        self._script.lines = [
            InputLine(line[:LONGEST_LINE].removesuffix(b"\r"), len(line) > LONGEST_LINE)
            for line in raw.split(b"\n")
        ]
        self._sink.seek(0)
        self._sink.truncate()
        while self._script.lines:
            self.engine.handle(self._script.lines.pop(0))
        return self._sink.getvalue().decode()

    def answer(self, question: bytes | str) -> str:
        """Return the answer as written dialogues have it, with an empty line behind it."""
        output = self.ask(question)
        return output and output + "\n"
