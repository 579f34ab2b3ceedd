"""A program that speaks UCI or USI badly, or well: `python scripted_uci.py MODE`. It plays `MOVES`
over and over."""

import sys
import time

MOVES = {"uci": ["g1f3", "g8f6", "f3g1", "f6g8"], "usi": ["5i5h", "5a5b", "5h5i", "5b5a"]}


def main(mode: str) -> None:
    protocol, played, is_given, castling = "uci", 0, False, "e1h1"
    for line in sys.stdin:
        words = line.split()
        if words[0] in MOVES:
            protocol = words[0]
            print(
                "id name script\noption name Skill Level  type spin default 20 min  0 max 20\n"
                + "option name Style type combo default Solid var Solid var Very risky\n"
                + "option name Ponder type check default false\n"
                + "option name Node type  limit type spin default 1 min 1 max 9\n"
                + "option name UCI_Chess960 type check default true\n"
                + protocol
                + "ok",
                flush=True,
            )
        elif words[0] == "isready":
            print("readyok", flush=True)
        elif words[0] == "setoption":
            if words[1:] == ["name", "UCI_Chess960", "value", "false"]:
                castling = "e1g1"
            else:
                sys.stderr.write(line)
                sys.stderr.flush()
        elif words[0] == "position":
            is_given = words[1] != "startpos"
            played = len(words) - words.index("moves") - 1 if "moves" in words else 0
        elif words[0] == "go":
            if mode == "crash":
                print("segmentation fault, more or less", file=sys.stderr, flush=True)
                sys.exit(3)
            if mode == "silent":
                time.sleep(60)
            if mode == "garbage":
                print("\x00 what?\ninfo string bestmove e2e5\n\nbestmoves", flush=True)
            answers = {
                "illegal": "e2e5",
                "resign": "resign",
                "none": "(none)",
                "win": "win",
                "nothing": "",
                "castling": castling,
            }
            answers |= {"mate": "h1h8", "wait": "a8b8"} if is_given else {}
            if mode == "endless score":
                print("info score cp -" + 5000 * "9", flush=True)
            if mode == "behind":
                print("info depth 2 score cp -901 pv", flush=True)
            if mode == "even":
                print("info depth 2 multipv 1 score cp -10 pv", flush=True)
                print("info depth 2 multipv 2 score cp -901 pv", flush=True)
            print(
                "info depth 1 pv\nbestmove "
                + answers.get(mode, MOVES[protocol][played % 4])
                + " ponder a1a1"
                + ("\nbestmove a1a1" if mode == "twice" else ""),
                flush=True,
            )
        elif words[0] == "quit":
            return


if __name__ == "__main__":
    main(sys.argv[1])
