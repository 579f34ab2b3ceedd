"""The player with one tree: the same move however it thinks, limits, resignation, openings, clocks,
set-up positions."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from search_player import SearchPlayer

from azero.games.position import Position
from azero.games.table import make
from azero.match.referee import PLAYED_OUT, play_game
from azero.mesh import make_mesh
from azero.players.clock import Clock
from azero.players.play_style import PlayStyle
from azero.players.player import RESIGN
from azero.players.thinking import Analysis, Limits, Restriction, ThinkOptions
from azero.players.tree_player import TreePlayer
from azero.search.batched.policy import make_policy
from azero.search.leaf import ignore_symmetry, symmetry_network_leaf, uniform_leaf
from azero.search.single.parallel import ParallelTree, TreeSettings
from azero.search.single.selection import Gumbel, Puct

TICTACTOE = make("tictactoe")
GO = make(
    "go", size=5, komi=20.5
)  # Black needs nearly the whole board, so that its pass never wins
PASS = GO.num_actions - 1


def area_leaf(params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
    """Equal priors; the value is the area as it stands."""
    scores = jax.vmap(GO.score)(states) * (1.0 - 2.0 * states.to_play)
    return jnp.zeros((scores.shape[0], GO.num_actions)), jnp.tanh(scores / 5.0)


def player(
    game: Any = TICTACTOE,
    leaf: Any = None,
    batch: int = 1,
    style: PlayStyle | None = None,
    seed: int = 0,
    **settings: Any,
) -> TreePlayer:
    leaf = uniform_leaf(game) if leaf is None else leaf
    one_device = make_mesh([jax.local_devices()[0]])
    chosen = TreeSettings(batch=batch, **settings)
    evaluator = chosen.make_evaluator(game, ignore_symmetry(leaf), {}, seed, one_device)
    return TreePlayer(game, evaluator, settings=chosen, style=style or PlayStyle(), seed=seed)


def after(actions: list[int], game: Any = TICTACTOE) -> Position:
    position = Position.start(game)
    for action in actions:
        position = position.play(action)
    return position


def set_up(*rows: str) -> Position:
    """Return a 5x5 position, Black (X) to move."""
    marks = "".join(row.replace(" ", "") for row in rows)
    stones = ([point for point, mark in enumerate(marks) if mark == colour] for colour in "XO")
    return Position.of_state(GO, GO.setup(*stones, to_play=0))


CAPTURES = [
    # Black takes four stones by their last liberty, the corner, and owns the board.
    (set_up("X O O . .", "X O O X .", "X X X . .", ". . . . .", ". . . . ."), "D5"),
    (set_up(". O X . .", "O O X . .", "X X . . .", ". . . . .", ". . . . ."), "A5"),
]


class TestTheMoveIsTheSame:
    """A fresh search of one leaf at a time, eight at a time, a kept tree, and pondering all find
    the one good move."""

    @classmethod
    def setup_class(cls) -> None:
        # Equal priors take more exploration than an engine's.
        cls.single, cls.wide = (player(GO, area_leaf, batch=b, rule=Puct()) for b in (1, 8))

    @pytest.mark.parametrize(("position", "answer"), CAPTURES)
    @pytest.mark.parametrize("choice", ["visits", "lcb"])
    def test_captures(self, position: Position, answer: str, choice: Any) -> None:
        values = []
        for thinker in (self.single, self.wide):
            thinker.reset()
            thinker.style = PlayStyle(choice=choice)
            analysis = thinker.think(position, Limits(visits=300))
            assert position.action_name(analysis.moves[0].action) == answer
            assert (
                analysis.visits
                == analysis.playouts
                == 300
                == sum(move.visits for move in analysis.moves)
            )
            values.append(analysis.value)
        assert values[0] == pytest.approx(values[1], abs=0.15)

    @pytest.mark.parametrize(("position", "answer"), CAPTURES)
    def test_after_pondering_and_the_unexpected_reply(
        self, position: Position, answer: str
    ) -> None:
        """White passes before it, after the player has pondered without limits."""
        passing = GO.num_actions - 1
        before = Position.of_state(GO, GO.setup(*_stones(position), to_play=1))
        thinker = self.wide
        thinker.reset()
        calls = iter(range(1000))
        pondered = thinker.think(
            before, Limits(), ThinkOptions(should_stop=lambda: next(calls) >= 39)
        )
        assert pondered.playouts == 56 + 19 * 8  # 21 smaller batches at first
        now = before.play(passing)
        kept = thinker.think(now, Limits(playouts=200))
        assert kept.visits > kept.playouts == 200
        assert now.action_name(kept.moves[0].action) == answer
        thinker.reset()
        assert thinker.think(now, Limits(visits=300)).moves[0].action == kept.moves[0].action


def _stones(position: Position) -> tuple[list[int], list[int]]:
    board = GO.board(position.state).reshape(-1)
    return np.flatnonzero(board == 1).tolist(), np.flatnonzero(board == -1).tolist()


class TestAnalysis:
    def test_a_win_in_one_is_exact(self) -> None:
        analysis = player().think(after([0, 3, 1, 4]), Limits(visits=200))
        best = analysis.moves[0]
        assert best.action == 2 and best.value == 1.0 and best.line == (2,)
        assert best.prior == pytest.approx(1 / 5) and -1.0 <= best.lcb < best.value
        assert analysis.value > 0.8 and analysis.raw_value == 0.0
        np.testing.assert_allclose(analysis.raw_policy[[2, 5, 6, 7, 8]], 0.2, rtol=1e-6)

    def test_values_are_those_of_the_side_to_move(self) -> None:
        """X threatens twice: O's every move loses, X's reply completes a line."""
        analysis = player(batch=4).think(after([0, 4, 2, 8, 6]), Limits(visits=600))
        assert analysis.value < -0.5 and all(move.value < -0.5 for move in analysis.moves)
        lines = {move.line[:2] for move in analysis.moves}
        assert {(1, 3), (3, 1)} <= lines and all(line[1] in (1, 3) for line in lines)

    def test_the_visits_along_a_line(self) -> None:
        """Two squares are empty: the first visit of a move is its own, all others go on to the last
        square."""
        analysis = player().think(after([0, 1, 2, 4, 3, 5, 7]), Limits(visits=11))
        assert {move.line for move in analysis.moves} == {(6, 8), (8, 6)} and sum(
            move.visits for move in analysis.moves
        ) == 11
        assert all(move.line_visits == (move.visits, move.visits - 1) for move in analysis.moves)

    def test_only_allowed_moves(self) -> None:
        thinker = player(batch=4)
        position = after([0, 3, 1, 4])
        thinker.think(position, Limits(visits=50))
        analysis = thinker.think(
            position,
            Limits(playouts=60),
            ThinkOptions(restriction=Restriction.first_move([5, 7], 0, 9)),
        )
        assert {move.action for move in analysis.moves} <= {5, 7} and analysis.playouts == 60
        # the network's, among all legal moves
        assert analysis.moves[0].prior == pytest.approx(1 / 5)
        # and all moves come back
        assert thinker.think(position, Limits(playouts=10)).moves[0].action == 2
        with pytest.raises(ValueError, match="no legal move is left to search after 4 moves"):
            thinker.think(
                position,
                Limits(visits=5),
                ThinkOptions(restriction=Restriction.first_move([0, 3, 99], 0, 9)),
            )

    def test_a_search_of_few_moves_does_not_decide_the_next_one(self) -> None:
        """UCI: `go searchmoves a2a3 nodes 50`, then `go nodes 20` in the same position."""
        thinker, position = player(batch=4), after([0, 3, 1, 4])
        few = ThinkOptions(restriction=Restriction.first_move([7], 0, 9))
        assert thinker.think(position, Limits(visits=200), few).moves[0].action == 7
        free = thinker.think(position, Limits(visits=50))
        assert free.visits == free.playouts == 50 and free.moves[0].action == 2

    def test_a_deep_restriction_holds_below_the_first_move_and_in_a_tree_apart(self) -> None:
        """O threatens 5 and X has to take it, but not where O's reply there is left out."""
        thinker = player(batch=4)
        position = after([0, 3, 8, 4])
        free = thinker.think(position, Limits(visits=200))
        assert free.moves[0].action == 5 and {move.line[1] for move in free.moves[1:]} == {5}
        one_ply = thinker.think(
            position,
            Limits(visits=200),
            ThinkOptions(restriction=Restriction.none(9).avoiding(1, [5], 2).avoiding(0, [2], 1)),
        )
        assert one_ply.playouts == 200 and {move.action for move in one_ply.moves} == {1, 5, 6, 7}
        assert all(move.line[1] != 5 for move in one_ply.moves) and any(
            5 in move.line[2:] for move in one_ply.moves
        )
        three_plies = thinker.think(
            position,
            Limits(visits=200),
            ThinkOptions(restriction=Restriction.none(9).avoiding(1, [5], 4)),
        )
        assert (
            all(5 not in move.line[1::2] for move in three_plies.moves)
            and three_plies.value > one_ply.value > free.moves[1].value
        )
        assert thinker.think(position, Limits(playouts=1)).visits == free.visits + 1, (
            "the kept tree is as it was"
        )

    def test_a_position_in_which_a_restriction_leaves_no_move_is_searched_no_further(self) -> None:
        analysis = player(batch=4).think(
            after([0, 3, 8, 4]),
            Limits(visits=100),
            ThinkOptions(restriction=Restriction.none(9).allowing(1, [], 2)),
        )
        assert (
            all(len(move.line) == 1 and move.value == 0.0 for move in analysis.moves)
            and len(analysis.moves) == 5
        )

    def test_the_kept_tree_and_the_one_apart_share_the_limit(self) -> None:
        deep = Restriction.none(9).avoiding(1, [5], 2)
        thinker = player(max_nodes=60)
        thinker.think(after([]), Limits(visits=20))
        apart = thinker._tree_apart(deep)
        apart.move_to(after([]).state, after([]).legal, None)
        while apart.search(1):
            pass
        assert thinker._tree.num_nodes == 21 and apart.num_nodes == 39
        thinker.think(after([]), Limits(visits=40))
        assert (
            thinker.think(after([]), Limits(visits=50), ThinkOptions(restriction=deep)).visits == 50
            and thinker._tree.num_nodes == 0
        )

    def test_progress_is_told_and_ends_with_the_result(self) -> None:
        told: list[Analysis] = []
        analysis = player().think(
            after([]),
            Limits(visits=30),
            ThinkOptions(on_progress=told.append, progress_seconds=0.0),
        )
        assert told[-1] is analysis and [each.visits for each in told[:30]] == list(range(1, 31))

    def test_a_finished_game_has_no_moves(self) -> None:
        analysis = player().think(after([0, 3, 1, 4, 2]), Limits(visits=5))
        assert analysis.moves == () and analysis.value == -1.0 and analysis.visits == 0

    def test_limits(self) -> None:
        thinker, position = player(batch=8), after([])
        assert thinker.think(position, Limits(visits=20)).playouts == 20
        assert thinker.think(position, Limits(visits=30)).playouts == 10
        assert thinker.think(position, Limits(visits=30)).playouts == 0
        assert thinker.think(position, Limits(visits=100, playouts=7)).playouts == 7
        assert (
            thinker.think(
                position, Limits(playouts=8), ThinkOptions(should_stop=lambda: True)
            ).playouts
            == 5  # one batch
        )
        began = time.perf_counter()
        assert thinker.think(position, Limits(seconds=0.2)).playouts > 0
        assert time.perf_counter() - began < 0.6

    def test_a_full_tree_stops_with_a_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        analysis = player(batch=8, max_nodes=40).think(after([]), Limits(visits=500))
        assert 39 <= analysis.playouts < 60
        assert capsys.readouterr().err.startswith("the tree is full with 40 positions")

    def test_memory_bounds_the_tree_and_the_state_counts(self) -> None:
        thinker = player()
        thinker.limit_memory(1)
        most = thinker._settings.max_nodes
        state_words = thinker._rules.pack(Position.start(TICTACTOE).state).state
        assert 1 <= most == (1 << 20) // thinker.evaluator.node_bytes(len(state_words), 9)
        thinker.think(Position.start(TICTACTOE), Limits(playouts=4 * most))
        root = thinker._tree.root
        assert root is not None and thinker._tree.num_nodes <= most
        nodes, moves, edges, _ = root.store.columns.counts.tolist()
        states = nodes * root.store.states[0].nbytes
        used = states + (nodes - 1) * root.store.bytes_of(0, 0) + root.store.bytes_of(moves, edges)
        assert 0.2 * (1 << 20) < used <= 1 << 20
        big = player()
        big.limit_memory(64)
        assert big._settings.max_nodes > 60 * most

    def test_depths_are_those_of_the_descents(self) -> None:
        thinker = player()
        one = thinker.think(Position.start(TICTACTOE), Limits(playouts=1))
        assert (one.depth, one.deepest) == (1.0, 1)
        more = thinker.think(Position.start(TICTACTOE), Limits(playouts=200))
        assert 1.0 < more.depth < more.deepest <= 9

    def test_the_first_batches_are_small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A batch costs strength where little is known; later it is full."""
        sizes: list[int] = []
        search = ParallelTree.search

        def counted(tree: ParallelTree, most: int, *others: Any) -> int:
            sizes.append(search(tree, most, *others))
            return sizes[-1]

        monkeypatch.setattr(ParallelTree, "search", counted)
        for loss, first in ((0, [1] * 8 + [2] * 4), (1, [8] * 3)):
            sizes.clear()
            thinker = player(GO, area_leaf, batch=8, virtual_loss=loss)
            thinker.think(after([], GO), Limits(visits=200))
            assert sizes[: len(first)] == first and max(sizes) == 8

    def test_evaluate(self) -> None:
        game = make("go", size=5)

        def corner(params: Any, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
            """A network that wants the first point of whatever it is shown."""
            return jnp.zeros((planes.shape[0], 26)).at[:, 0].set(5.0), jnp.full(
                planes.shape[0], 0.25
            )

        one_device = make_mesh([jax.local_devices()[0]])
        settings = TreeSettings(batch=4)
        evaluator = settings.make_evaluator(
            game, symmetry_network_leaf(game, corner), {}, mesh=one_device
        )
        thinker = TreePlayer(game, evaluator, settings=settings)
        position = Position.start(game)
        favourites = [
            int(thinker.evaluate(position, symmetry)[0].argmax()) for symmetry in range(8)
        ]
        assert sorted(set(favourites)) == [0, 4, 20, 24] and favourites[0] == 0
        policy, value = thinker.evaluate(position)
        np.testing.assert_allclose(policy[[0, 4, 20, 24]], policy[0], rtol=1e-5)
        assert policy.sum() == pytest.approx(1.0) and value == pytest.approx(0.25)
        with pytest.raises(ValueError, match="no symmetry 8; go has 0 to 7"):
            thinker.evaluate(position, 8)

    def test_another_komi_is_another_tree_and_another_board_is_refused(self) -> None:
        thinker = player(GO, batch=8)
        passing = GO.num_actions - 1
        values = []
        for game in (GO, make("go", size=5, komi=-0.5)):
            position = Position.start(game).play(passing)  # White may end the game by a pass
            analysis = thinker.think(position, Limits(visits=400))
            values.append(next(move.value for move in analysis.moves if move.action == passing))
        assert values == [1.0, -1.0]
        with pytest.raises(ValueError, match="plays go on 5x5, not go on 7x7"):
            thinker.think(Position.start(make("go", size=7)), Limits(visits=1))


class TestChoosing:
    def test_it_never_loses_tic_tac_toe_and_plays_no_illegal_move(self) -> None:
        thinker = player(batch=4, style=PlayStyle(limits=Limits(visits=400)))
        other = SearchPlayer(
            make_policy(TICTACTOE, uniform_leaf(TICTACTOE)),
            {},
            name="first free square",
            temperature_moves=9,
        )
        for first in (True, False, True, False):
            record = play_game(TICTACTOE, *((thinker, other) if first else (other, thinker)))
            assert record.ending == PLAYED_OUT
            assert record.rewards[0 if first else 1] >= 0.0

    def test_a_pass_after_a_pass_is_played_where_it_wins_though_the_search_never_tried_it(
        self,
    ) -> None:
        def never_passing(params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
            logits, _ = area_leaf(params, key, states)
            mover = jax.vmap(GO.to_play)(states)
            return logits.at[:, PASS].set(-30.0), jnp.where(mover == 0, -0.95, 0.95)

        limits = Limits(visits=8)
        thinker = player(GO, never_passing, style=PlayStyle(limits=limits))
        columns = [12, 11, 7, 6, 17, 16, 2, 1]
        ahead = after([*columns, PASS], GO)  # White, by komi
        analysis = thinker.think(ahead, limits)
        assert analysis.value == 1.0
        best = analysis.moves[0]
        assert (best.action, best.value, best.lcb, best.line) == (PASS, 1.0, 1.0, (PASS,))
        assert thinker.choose(ahead, Clock()).action == PASS
        points = ThinkOptions(restriction=Restriction.first_move(range(PASS), 1, GO.num_actions))
        assert PASS not in {move.action for move in thinker.think(ahead, limits, points).moves}
        behind = after([*columns, 22, PASS], GO)
        assert thinker.choose(behind, Clock()).action != PASS
        early = after([12, 11, PASS], GO)
        assert thinker.choose(early, Clock()).action != PASS, "a free move, not the end"

    def test_it_resigns_after_several_hopeless_moves_in_a_row(self) -> None:
        def hopeless(params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
            """Bad for O, whoever looks."""
            logits, _ = uniform_leaf(TICTACTOE)(params, key, states)
            mover = jax.vmap(TICTACTOE.to_play)(states)
            return logits, jnp.where(mover == 1, -0.95, 0.95)

        style = PlayStyle(limits=Limits(visits=2), resign_threshold=-0.9, resign_moves=2)
        thinker = player(leaf=hopeless, style=style)
        assert thinker.choose(after([0]), Clock()).action != RESIGN
        assert thinker.choose(after([0, 1, 3]), Clock()).action == RESIGN
        thinker.reset()
        assert thinker.choose(after([0]), Clock()).action != RESIGN  # a new game starts over
        assert thinker.choose(after([0, 1]), Clock()).action != RESIGN  # X does well
        assert thinker.choose(after([0, 1, 3]), Clock()).action != RESIGN  # and that broke the row

    def test_openings_vary_and_the_seed_decides_them(self) -> None:
        style = PlayStyle(limits=Limits(visits=40), temperature_moves=1)
        openings = []
        for seed in (0, 0, 1, 2, 3, 4, 5):
            openings.append(player(style=style, seed=seed).choose(after([]), Clock()).action)
        assert openings[0] == openings[1] and len(set(openings)) > 2
        greedy = {
            player(style=PlayStyle(limits=Limits(visits=40)), seed=seed)
            .choose(after([]), Clock())
            .action
            for seed in (1, 2)
        }
        assert len(greedy) == 1

    def test_without_visits_the_network_alone_plays(self) -> None:
        position = after([0, 3, 1, 4])
        decision = player(style=PlayStyle(limits=Limits(visits=0))).choose(position, Clock())
        assert decision.action == 2 and decision.value == 0.0  # of equal priors the first

    def test_a_clock_bounds_the_time_and_a_decided_search_stops_early(self) -> None:
        thinker = player(batch=8, style=PlayStyle(limits=Limits(), lag_seconds=0.1))
        position = after([0, 3, 1, 4])
        thinker.warm_up(position)
        began = time.perf_counter()
        decision = thinker.choose(position, Clock(seconds_per_move=1.0))
        assert decision.action == 2 and time.perf_counter() - began < 0.95

    def test_a_clock_with_more_moves_than_edges(self) -> None:
        style = PlayStyle(limits=Limits(), lag_seconds=0.1)
        for chosen in (Puct(), Gumbel(num_simulations=8)):
            settings = {"rule": chosen, "keeps_tree": False, "edge_width": 4}
            thinker = player(batch=8, style=style, **settings)
            thinker.warm_up(after([]))
            decision = thinker.choose(after([]), Clock(seconds_per_move=0.3))
            assert decision.action in range(9) and decision.visits > 8

    @pytest.mark.parametrize("changes", [{"choice": "best"}, {"resign_moves": 0}])
    def test_settings_out_of_range_are_named(self, changes: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=str(next(iter(changes.values())))):
            PlayStyle(**changes)


def test_positions_begin_from_a_handicap() -> None:
    position = Position.of_state(GO, GO.setup([6, 8, 16, 18], [], to_play=1))
    assert position.to_play == 1 and position.actions == () and not position.is_over
    assert position.legal.sum() == 25 - 4 + 1
    assert position.play(12).to_play == 0
