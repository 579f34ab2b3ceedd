"""A Go program for tests: `python scripted_go.py MODE [SCORE]`. It passes at every move, and says
SCORE of every finished game.

Mode pass does that; corner plays A1 when it has Black's first move; crash dies and illegal plays Z9
at its first move, silent says nothing. With "late-" before it such a mode begins after a stone at
C3. Mode deaf answers nothing at all.
"""

import os
import sys
import time

mode, score = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
known = {"final_score"} if score else set()
for line in sys.stdin:
    number, _, command = line.strip().partition(" ")
    name, *words = command.split()
    answer = ""
    if mode == "deaf":
        print("loading weights\nno such file: weights.bin", file=sys.stderr, flush=True)
        time.sleep(60)
    if name == "known_command":
        answer = str(words[0] in known).lower()
    elif name == "name":
        answer = "scripted"
    elif name == "final_score":
        answer = score
    elif name == "genmove":
        if mode.startswith("late-"):
            mode, answer = mode.removeprefix("late-"), "C3"
            sys.stdout.write(f"={number} {answer}\n\n")
            sys.stdout.flush()
            continue
        if mode == "crash":
            os._exit(3)
        if mode == "silent":
            time.sleep(60)
        answer = {"illegal": "Z9", "corner": "A1" if words == ["black"] else "pass"}.get(
            mode, "pass"
        )
        mode = "pass" if mode == "corner" else mode
    sys.stdout.write(f"={number} {answer}\n\n")
    sys.stdout.flush()
    if name == "quit":
        break
