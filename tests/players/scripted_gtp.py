"""A GTP program for tests that plays nim and can fail in every way: `python scripted_gtp.py MODE`.

It answers genmove with take1, unless MODE is crash, silent, illegal, resign, garbage or child. In
mode refuses it denies our moves, in mode stubborn it ignores quit.
"""

import os
import subprocess
import sys
import time

mode = sys.argv[1]
print("starting\nno license found", file=sys.stderr, flush=True)
for line in sys.stdin:
    number, _, command = line.strip().partition(" ")
    answer = f"={number}\n\n"
    if command == "quit" and mode == "stubborn":
        time.sleep(60)
    if command.startswith("play") and mode == "refuses":
        answer = f"?{number} I do not believe it\n\n"
    if command.startswith("genmove"):
        answer = f"={number} Take1\n\n"
        if mode == "crash":
            print("segmentation fault, more or less", file=sys.stderr, flush=True)
            os._exit(3)
        if mode == "silent":
            time.sleep(60)
        if mode == "illegal":
            answer = f"={number} D4\n\n"
        if mode == "resign":
            answer = f"={number} resign\n\n"
        if mode == "child":
            child = subprocess.Popen(["sleep", "60"])
            print(f"child {child.pid}", file=sys.stderr, flush=True)
            time.sleep(60)
        if mode == "garbage":
            sys.stdout.buffer.write(
                b"\xff\xfe\x00 thinking...\n= not this\n=%s9 nor this\n\n" % number.encode()
                + b"x" * 200_000
                + b"\n"
            )
            sys.stdout.flush()
    sys.stdout.write(answer)
    sys.stdout.flush()
    if command == "quit":
        break
