"""Drives KaTrain's engine and game classes over `azero analysis`, without a window: `python
katrain_session.py COMMAND...`, in KaTrain's own environment.

It prints one JSON object of what came of it, and ends with an error where KaTrain's code raises
one.
"""

import json
import os
import shlex
import sys
import tempfile
import time

os.environ.update(
    KIVY_NO_ARGS="1", KIVY_LOG_MODE="PYTHON", KIVY_HOME=tempfile.mkdtemp(), HOME=tempfile.mkdtemp()
)
COMMAND = sys.argv[1:]
sys.argv = sys.argv[:1]

from katrain.core.ai import game_report, generate_ai_move  # noqa: E402
from katrain.core.base_katrain import KaTrainBase  # noqa: E402
from katrain.core.constants import AI_HUMAN, AI_PRO, AI_STRATEGIES, OUTPUT_ERROR  # noqa: E402
from katrain.core.engine import KataGoEngine  # noqa: E402
from katrain.core.game import Game, KaTrainSGF, Move  # noqa: E402

SIZE = 5
RULES = ("japanese", "chinese", "korean", "aga", "tromp-taylor", "new zealand", "stone_scoring")
"""All that KaTrain sends."""
THRESHOLDS = [12, 6, 3, 1.5, 0.5, 0]
"""Of the report: its defaults."""


class Controls:
    """What the games tell a window."""

    def set_status(self, *args, **kwargs) -> None:
        pass

    update_evaluation = set_status


class KaTrain(KaTrainBase):
    """KaTrain without a window; what it calls an error is kept."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        super().__init__(force_package_config=True, debug_level=0)
        self.controls, self.pondering = Controls(), False

    def log(self, message, level=0) -> None:
        if level == OUTPUT_ERROR:
            self.errors.append(str(message))

    def __call__(self, message, *args, **kwargs) -> None:
        if "popup" in message:
            self.errors.append(f"{message} {args}")

    def update_state(self, *args, **kwargs) -> None:
        pass

    def save_config(self, *args, **kwargs) -> None:
        pass


def wait(engine, seconds: float = 600.0) -> None:
    """Wait until all queries are answered."""
    deadline = time.monotonic() + seconds
    while engine.queries_remaining():
        if not engine.check_alive() or time.monotonic() > deadline:
            raise RuntimeError("the engine is dead or silent")
        time.sleep(0.02)


def main() -> None:
    katrain = KaTrain()
    settings = {
        **katrain.config("engine"),
        "altcommand": shlex.join(COMMAND),
        "backend": "custom",
        "max_visits": 8,
        "fast_visits": 4,
    }
    katrain._config["engine"] = settings
    engine = KataGoEngine(katrain, settings)
    seen: dict[str, object] = {"rules": [], "ais": []}
    for rules in RULES:
        game = Game(katrain, engine, game_properties={"SZ": SIZE, "KM": 0.5, "RU": rules})
        wait(engine)
        assert game.root.analysis_complete and game.root.score is not None, rules
        seen["rules"].append(rules)

    game = katrain.game = Game(
        katrain, engine, game_properties={"SZ": SIZE, "KM": 0.5, "RU": "chinese"}
    )
    for vertex in ("C3", "D4", "C4", "D3", "C2", "D2"):
        game.play(Move.from_gtp(vertex, player=game.current_node.next_player))
    wait(engine)
    game.analyze_all_nodes(even_if_present=True)
    wait(engine)
    nodes = game.current_node.nodes_from_root
    # The graph, the candidate moves and the comment of every position.
    seen["scores"], seen["winrates"] = (
        [node.score for node in nodes],
        [node.winrate for node in nodes],
    )
    seen["losses"] = [node.points_lost for node in nodes[1:]]
    seen["ownership"] = [len(node.ownership) for node in nodes]
    for node in nodes:
        assert node.candidate_moves and all(
            move["pointsLost"] is not None and move["pv"] for move in node.candidate_moves
        )
        for details in (False, True):
            node.comment(sgf=True, teach=True, details=details)
        assert node.policy_ranking and node.format_score() and node.format_winrate()
    _ = game.manual_score
    game.analyze_extra("extra")
    game.analyze_extra("equalize")
    game.analyze_extra("sweep")
    game.analyze_extra("alternative")
    game.set_region_of_interest([0, 2, 0, 2])
    wait(engine)
    game.region_of_interest = None
    for strategy in AI_STRATEGIES:
        if strategy in (AI_HUMAN, AI_PRO):
            continue  # they need KataGo's network of human players
        move, node = generate_ai_move(game, strategy, katrain.config(f"ai/{strategy}") or {})
        assert move is not None and node is not None, strategy
        wait(engine)
        seen["ais"].append(strategy)
        game.undo(1)
        wait(engine)
    summary, histogram, losses = game_report(game, THRESHOLDS)
    seen["report"] = {
        "moves": {colour: len(values) for colour, values in losses.items()},
        "accuracy": {c: summary[c].get("accuracy") for c in "BW"},
    }
    assert len(histogram) == len(THRESHOLDS)
    path = os.path.join(tempfile.mkdtemp(), "game.sgf")
    game.write_sgf(
        path,
        {
            **katrain.config("trainer"),
            "save_feedback": [True] * 6,
            "save_analysis": True,
            "save_marks": True,
        },
    )
    again = Game(katrain, engine, move_tree=KaTrainSGF.parse_file(path))
    wait(engine)
    seen["saved"] = os.path.getsize(path)
    assert len(again.current_node.nodes_from_root) >= 1
    engine.shutdown(finish=None)
    seen["errors"] = katrain.errors
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # Kivy's threads
