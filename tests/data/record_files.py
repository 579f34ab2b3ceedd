"""Small files of records for the tests of imports."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

from azero.data.records.dataset import Dataset
from azero.data.records.filters import Filters, Fractions
from azero.data.records.formats import format_of
from azero.data.records.human import find_records, import_games
from azero.data.records.recorded import ImportTally

EXPERT = Path(__file__).parent / "records" / "expert9.sgf"
"""24 games of KataGo, 9x9, Tromp-Taylor."""
STOCKFISH = Path(__file__).parent / "records" / "stockfish.pgn"
"""8 games of Stockfish, from positions after random moves."""
GAME = "(;GM[1]SZ[9]RE[B+R]BR[9d]WR[8d];B[ee];W[cc];B[gg];W[gc])"
FILTERS = Filters(size=(9,), suicide=True)
HALVES = Fractions(validation=0.25, test=0.25)


def import_to(
    directory: Path, *paths: Path, filters: Filters = FILTERS, fractions: Fractions = HALVES
) -> tuple[Dataset, ImportTally]:
    """Import all of `paths`."""
    dataset, tally = Dataset.create(directory, filters, fractions), ImportTally()
    for _ in import_games(
        find_records(paths, format_of(filters.game).suffixes, tally), dataset, tally
    ):
        pass
    return dataset, tally


def write_mixed(directory: Path) -> list[Path]:
    """Write the expert's games as one .sgf.gz, one .zip and one .tar.gz, and return the paths."""
    games = EXPERT.read_text().splitlines()
    directory.mkdir()
    (directory / "a.sgf.gz").write_bytes(gzip.compress("\n".join(games[:10]).encode()))
    with zipfile.ZipFile(directory / "b.zip", "w") as archive:
        for number, game in enumerate(games[10:14]):
            archive.writestr(f"inner/{number}.sgf", game)
    with tarfile.open(directory / "c.tar.gz", "w:gz") as tar:
        content = "\n".join(games[14:]).encode()
        entry = tarfile.TarInfo("rest.sgf")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return [directory / "a.sgf.gz", directory / "b.zip", directory / "c.tar.gz"]
