"""The progress bar: on a terminal, on stderr, for work that lasts."""

import os
import pty
import subprocess
import sys

SCRIPT = """
import sys
from wardround.records.progress import progress
with progress("Reading", total=4, delay_s=float(sys.argv[1])) as tick:
    for _ in range(4):
        tick(1)
print("done", "rich" in sys.modules)
"""


def run(delay, stderr):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, delay], stdout=subprocess.PIPE, stderr=stderr, check=True, text=True
    ).stdout


def on_a_terminal(delay):
    master, slave = pty.openpty()
    try:
        out = run(delay, slave)
        os.set_blocking(master, False)
        try:
            shown = os.read(master, 100_000).decode()
        except BlockingIOError:
            shown = ""
    finally:
        os.close(slave)
        os.close(master)
    return out, shown


def test_it_shows_on_a_terminal_what_is_done_and_how_far_and_leaves_stdout_alone():
    out, shown = on_a_terminal("0")
    assert "Reading" in shown
    assert "4/4" in shown
    assert out == "done True\n"


def test_it_is_silent_for_short_work_and_does_not_even_load_its_library():
    assert on_a_terminal("60") == ("done False\n", "")


def test_it_is_silent_where_stderr_is_no_terminal(tmp_path):
    with (tmp_path / "err").open("w") as stderr:
        assert run("0", stderr) == "done False\n"
    assert (tmp_path / "err").read_text() == ""


def test_an_error_inside_passes_through():
    script = SCRIPT.replace("tick(1)", "raise KeyError('x')")
    ended = subprocess.run([sys.executable, "-c", script, "0"], capture_output=True, text=True, check=False)
    assert "KeyError: 'x'" in ended.stderr
