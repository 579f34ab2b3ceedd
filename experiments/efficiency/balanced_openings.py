"""Write openings of random moves after which neither side is far ahead, one line each, for
`azero match --openings`: a match from decided positions says little about its players.

    python experiments/efficiency/balanced_openings.py model:animal-shogi openings.txt --moves 6
"""

import argparse
import random
from pathlib import Path

import azero


def draw_positions(game, moves: int, number: int, rng: random.Random):
    """Yield up to `number` different positions after `moves` random moves, with these moves."""
    seen = set()
    for _ in range(100 * number):
        position, line = azero.Position.start(game), []
        while len(line) < moves and (legal := position.legal_moves()):
            line.append(rng.choice(legal))
            position = position.play(line[-1])
        if len(line) == moves and position.legal_moves() and str(position) not in seen:
            seen.add(str(position))
            yield position, line
        if len(seen) == number:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("judge", help="the player whose search values the positions")
    parser.add_argument("out", type=Path)
    parser.add_argument("--moves", type=int, default=6)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--visits", type=int, default=200)
    parser.add_argument("--limit", type=float, default=0.5, help="largest |value|, in [-1, 1]")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    judge = azero.load(args.judge)
    kept, tried = [], 0
    for position, line in draw_positions(
        judge.game, args.moves, 20 * args.number, random.Random(args.seed)
    ):
        tried += 1
        if abs(judge.search(position, visits=args.visits).value) <= args.limit:
            kept.append(" ".join(line))
        if len(kept) == args.number:
            break
    args.out.write_text("\n".join(kept) + "\n")
    print(f"{len(kept)} of {tried} positions are within {args.limit} of even")


if __name__ == "__main__":
    main()
