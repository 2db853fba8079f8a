"""The command line, ``wardround …`` or ``python main.py …``: parse, call the library, render.

Exit codes: 0 done; 1 an unforeseen error; 2 wrong usage; 3 settings; 4 input; 5 index; 6 model;
7 privacy; 130 interrupted with Ctrl-C; 141 the reader of a pipe went away.
``--help`` imports neither LlamaIndex nor numpy.
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from wardround import __version__
from wardround.commands import cases, coding, diagnose, evaluate, learning
from wardround.commands.console import note
from wardround.errors import WardroundError

INTERRUPTED = 130
READER_GONE = 141

app = typer.Typer(
    name="wardround",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Clinical retrieval: diagnoses from similar past records, with the evidence they rest on.",
    epilog="Exit codes: 0 done, 1 unforeseen, 2 usage, 3 settings, 4 input, 5 index, 6 model, 7 privacy, "
    "130 interrupted, 141 broken pipe.",
)
app.command("demo")(diagnose.demo)
app.command("diagnose")(diagnose.diagnose)
app.command("icd10")(coding.icd10)
app.add_typer(cases.app, name="cases")
app.command("fit")(learning.fit)
app.command("calibrate")(learning.calibrate)
app.add_typer(evaluate.app, name="evaluate")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    _traceback: Annotated[bool, typer.Option("--traceback", hidden=True)] = False,
) -> None:
    """Show the help where no verb is given."""
    if version:
        typer.echo(f"wardround {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    Args:
        arguments: without the program's name; those of the process where None.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _write_to_nowhere()
        return READER_GONE
    except OSError as error:
        if not _cannot_write(error):
            raise
        _write_to_nowhere()
        note(f"wardround: the output cannot be written ({error.strerror}); make room, or send it elsewhere")
        return 1
    if code == INTERRUPTED:
        note("wardround: interrupted; what was there before is unchanged")
    return code


def _write_to_nowhere() -> None:
    """The interpreter flushes once more at exit: let it do so without complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _cannot_write(error: Exception) -> bool:
    full = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
    return isinstance(error, OSError) and error.errno in full and error.filename is None


def _run(given: list[str]) -> int:
    try:
        code = app(given, prog_name="wardround", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as leaving:  # typer's way to end after a broken pipe
        if isinstance(leaving.__context__, BrokenPipeError):
            raise leaving.__context__ from None
        raise
    except Exception as error:
        if isinstance(error, BrokenPipeError) or _cannot_write(error):
            raise
        if "--traceback" in given[:1]:
            traceback.print_exc()
        return _explain(error)
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> int:
    """Say in a line what went wrong, and give the exit code."""
    if isinstance(error, WardroundError):
        note(f"wardround: {error}")
        return error.exit_code
    if (show := getattr(error, "show", None)) is not None:  # typer's usage errors
        show()
        return int(getattr(error, "exit_code", 2))
    note(f"wardround: unforeseen {type(error).__name__}: {error}")
    note("wardround: please report this with what 'wardround --traceback ...' prints")
    return 1


if __name__ == "__main__":
    sys.exit(main())
