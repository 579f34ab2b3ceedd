"""The analysis engine in this process, over a thinker without a network."""

import json
from typing import Any

from uniform_thinker import UniformThinker

from azero.engines.go_game import GoGame
from azero.engines.kata.engine import AnalysisEngine


class Client:
    """An engine whose queries are worked on when `finish` is called."""

    def __init__(self, **options: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.game = GoGame(lambda game: UniformThinker(game, **options), (5, 5))
        self.engine = AnalysisEngine(self.game, lambda text: self.messages.append(json.loads(text)))
        self.engine.describe("net", visits=12)

    def send(self, *queries: Any) -> None:
        for query in queries:
            self.engine.handle(query if isinstance(query, str) else json.dumps(query))

    def finish(self) -> list[dict[str, Any]]:
        self.engine.close()
        self.engine.run()
        return self.messages

    def answers(self, *queries: Any) -> list[dict[str, Any]]:
        self.send(*queries)
        return self.finish()
