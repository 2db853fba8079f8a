"""Forks a writer on command and kills it at a given moment; imports are paid once.

Reads lines ``operation numbers delay`` on stdin, e.g. ``delete 3,5 0.02``; answers with one line each: how
long the writer ran, or ``killed``.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from plain_cases import case, parts
from wardround.indexes.cases import CaseIndex


def work(path, operation, numbers):
    if operation == "build":
        CaseIndex.build(map(case, numbers), path, **parts())
        return
    index = CaseIndex.open(path, **parts())
    if operation == "add":
        index.replace([case(number, edition=1) for number in numbers])
    else:
        index.delete([f"r{number}" for number in numbers])


def say(answer):
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


def main():
    path = sys.argv[1]
    say("ready")
    for line in sys.stdin:
        operation, numbers, delay = line.split()
        begin = time.perf_counter()
        child = os.fork()
        if child == 0:
            os.setsid()
            work(path, operation, [int(number) for number in numbers.split(",")])
            os._exit(0)
        end = begin + float(delay)
        while time.perf_counter() < end:
            if os.waitpid(child, os.WNOHANG)[0]:
                break
            time.sleep(0.0005)
        else:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            say("killed" if os.WIFSIGNALED(status) else "late")
            continue
        say(time.perf_counter() - begin)


main()
