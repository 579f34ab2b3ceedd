"""`azero elo`: ratings from directories of matches and from runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from azero.console.standard_output import say
from azero.console.tables import count_of, make_table
from azero.console.terminal import make_console
from azero.data.rows import to_plain
from azero.match.arena import pair_results
from azero.match.elo import Draws, EloFit, PairResult, Rating, fit_elo
from azero.match.results import disambiguate_names, read_results
from azero.match.score import Tally
from azero.report.plots import save_ratings


def rate(
    directories: Sequence[Path],
    anchors: Mapping[str, float],
    draws: Draws = "davidson",
    plot: Path | None = None,
    as_json: bool = False,
    console: Console | None = None,
) -> EloFit:
    """Print the ratings of all players in directories of matches (see `azero.match.directory`), of
    runs (their matches between checkpoints), or of such directories, and save them with their
    intervals as the image `plot`. Without anchors the first player is at 0; `draws` as in
    `fit_elo`. With `as_json` one JSON object is printed and nothing else. What cannot be rated is
    left out, and standard error says why.

    Raises:
      ValueError: there are no games, a file is damaged, or the players are not connected.
    """
    console = console or make_console()
    left_out: list[str] = []
    matches = disambiguate_names(read_results(directories, left_out))
    if not matches:
        raise ValueError(f"nothing to rate: {'; '.join(left_out)}")
    for reason in left_out:
        say(f"left out: {reason}")
    results = [
        pair
        for number, match in enumerate(matches)
        for index, result in enumerate(match.groups or [match.result])
        for pair in pair_results(*match.names, result, (number, index) if match.groups else None)
    ]
    fit = fit_elo(results, anchors or None, draws=draws)
    fit.ratings.sort(key=lambda rating: -rating.elo)
    if plot is not None:
        save_ratings(plot, fit.ratings)
    if as_json:
        console.print(json.dumps(_plain(fit, draws)), soft_wrap=True, highlight=False)
        return fit
    rows = [(*match.names, match.result.total, match.interval) for match in matches]
    console.print(matches_table(rows))
    console.print(ratings_table(fit.ratings))
    for line in _notes(fit, results, draws):
        console.print(line, soft_wrap=True)
    return fit


def ratings_table(ratings: Iterable[Rating]) -> Table:
    """Return a table of players and their ratings."""
    rows = [
        (
            rating.name,
            round(rating.elo),
            f"{rating.deviation:.0f}",
            f"{rating.low:z.0f} to {rating.high:z.0f}",
            rating.games,
            f"{100 * rating.score:.1f}%",
        )
        for rating in ratings
    ]
    return make_table("ratings", ("player", "Elo", "+-", "95%", "games", "score"), rows)


def matches_table(matches: Iterable[tuple[str, str, Tally, tuple[float, float]]]) -> Table:
    """Return a table of matches: two players, and the first one's result with the 95% interval of
    its score."""
    cells = [
        (
            first,
            second,
            total.wins,
            total.draws,
            total.losses,
            f"{100 * total.score:.1f}%",
            f"{100 * low:.0f} to {100 * high:.0f}%",
        )
        for first, second, total, (low, high) in matches
    ]
    return make_table(
        "matches", ("player", "against", "wins", "draws", "losses", "score", "95%"), cells
    )


def _notes(fit: EloFit, results: Sequence[PairResult], draws: Draws) -> list[str]:
    games = round(sum(result.games for result in results))
    lines = [
        f"{count_of(games, 'game')}; 95% holds for all players at once, +- is one player's "
        "standard error"
    ]
    half = 1.96 * fit.advantage_deviation
    lines.append(
        f"moving first is worth {fit.advantage:+z.0f} Elo (95%: {fit.advantage - half:+z.0f} to "
        f"{fit.advantage + half:+z.0f})"
    )
    if fit.draw_share:
        lines.append(f"equal players draw {100 * fit.draw_share:.0f}% of their games")
    if draws == "half":
        lines.append("draws count as half a win")
    return lines


def _plain(fit: EloFit, draws: Draws) -> dict[str, object]:
    ratings = [to_plain(vars(rating)) for rating in fit.ratings]
    return {
        "ratings": ratings,
        "advantage": fit.advantage,
        "advantage_deviation": fit.advantage_deviation,
        "draw_share": fit.draw_share,
        "draws": draws,
    }
