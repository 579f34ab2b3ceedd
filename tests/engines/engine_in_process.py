"""A GTP engine in this process, around a thinker that knows nothing."""

from uniform_thinker import UniformThinker

from azero.engines.go_game import GoGame
from azero.engines.gtp.engine import LONGEST_LINE, GtpEngine
from azero.engines.limits import Settings
from azero.engines.lines import InputLine


class InProcess:
    """Ask in bytes, get the answer as text. Input always waits, so that analysis ends at once."""

    def __init__(self, size: int = 5, *, value: float = 0.0, any_shape: bool = True) -> None:
        self.written: list[str] = []
        self.thinkers: list[UniformThinker] = []
        self.game = GoGame(
            self._make, (size, size), any_shape=any_shape, is_interrupted=lambda: True
        )
        self.value = value
        self.engine = GtpEngine(self.game, Settings(visits=30), self.written.append)

    def _make(self, game) -> UniformThinker:
        self.thinkers.append(UniformThinker(game, self.value))
        return self.thinkers[-1]

    def ask(self, line: bytes | str) -> str:
        raw = line.encode() if isinstance(line, str) else line
        self.written.clear()
        self.engine.handle(
            InputLine(raw[:LONGEST_LINE].removesuffix(b"\r"), len(raw) > LONGEST_LINE)
        )
        return "".join(self.written)
