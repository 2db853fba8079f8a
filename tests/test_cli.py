"""The command line from outside: help, exit codes, what it reads, and what it prints where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from wardround import __version__
from wardround.main import main

ROOT = Path(__file__).resolve().parents[1]
VERBS = ["demo", "diagnose", "icd10", "cases", "fit", "calibrate", "evaluate"]


def run(*arguments: str, text: bytes | None = b"", **changes: str) -> subprocess.CompletedProcess[bytes]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WARDROUND_")}
    return subprocess.run(
        [sys.executable, "-m", "wardround.main", *arguments],
        input=text,
        capture_output=True,
        check=False,
        env=environment | {"OMP_NUM_THREADS": "1"} | changes,
    )


def one_line_error(done: subprocess.CompletedProcess[bytes], code: int) -> str:
    message = done.stderr.decode()
    assert done.returncode == code, message
    assert done.stdout == b""
    assert "Traceback" not in message
    assert message.startswith("wardround: ")
    assert message.count("\n") == 1
    return message


def test_without_a_verb_the_help_is_shown_and_lists_every_verb() -> None:
    bare, asked = run(), run("--help")
    assert bare.returncode == asked.returncode == 0
    assert bare.stdout == asked.stdout
    for verb in VERBS:
        assert f"\n  {verb} ".encode() in bare.stdout


def test_help_imports_neither_llama_index_nor_numpy() -> None:
    script = (
        "import sys; from wardround.main import main; code = main(sys.argv[1:]);"
        "heavy = {'llama_index', 'numpy', 'faiss', 'rich.console'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    for arguments in (["--help"], ["--version"], ["diagnose", "--help"], ["cases", "build", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_main_py_can_be_run_as_a_file_too() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "main.py"), "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"wardround {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["cook"],
        ["diagnose", "--colour"],
        ["diagnose", "x", "--age", "old"],
        ["diagnose", "x", "--age", "-1"],
        ["icd10", "gout", "--top", "0"],
        ["cases", "build"],
        ["cases", "delete"],
        ["demo", "--language", "fr"],
        ["evaluate", "diagnosis"],
        ["evaluate", "diagnosis", "--records", "a", "--queries", "b", "--cv", "5"],
        ["evaluate", "diagnosis", "--records", "a", "--cv", "5", "--label", "smell"],
        ["evaluate", "diagnosis", "--records", "a", "--cv", "5", "--seed", "-1"],
        ["evaluate", "diagnosis", "--records", "a", "--cv", "5", "--conditions", ","],
        ["evaluate", "icd10", "a", "--language", "fr"],
        ["diagnose", "cough", "--language", "fr"],
        ["diagnose", "cough", "--language", ""],
        ["diagnose", "cough", "--sex", "F" * 201],
        ["diagnose", "cough", "--department", "D" * 201],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2_with_a_hint(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Error: " in printed.err


@pytest.mark.parametrize("group", ["cases", "evaluate"])
def test_a_group_without_a_verb_shows_its_verbs(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([group]) in {0, 2}
    printed = capsys.readouterr()
    assert "Commands:" in printed.out + printed.err


def test_a_wrong_settings_file_is_exit_code_3_and_names_the_key(tmp_path: Path) -> None:
    config = tmp_path / "w.toml"
    config.write_text("[cases]\nneighbors = 3\n")
    message = one_line_error(run("diagnose", "cough", "--config", str(config)), 3)
    assert f"{config}: unknown key cases.neighbors; did you mean cases.neighbours?" in message


def test_an_unknown_variable_is_exit_code_3() -> None:
    message = one_line_error(run("diagnose", "cough", WARDROUND_CASE__INDEX="x"), 3)
    assert "WARDROUND_CASE__INDEX" in message


@pytest.mark.parametrize(
    ("arguments", "piped", "expected"),
    [
        ([], b"", "stdin: the case is empty"),
        ([], b" \n\t\r\n", "stdin: the case is empty"),
        (["  "], b"", "the case is empty"),
        (["-"], b"", "stdin: the case is empty"),
        (
            ["--file", "/no/such/file"],
            b"",
            "/no/such/file: the case cannot be read (No such file or directory)",
        ),
        (["--file", "."], b"", "the case cannot be read (Is a directory)"),
        (["cough", "--file", "x.txt"], b"", "given twice"),
        ([], b"cough \xff\xfe\xff\xfe\xff" + b"\xc3" * 9, "stdin: "),
        ([], b"co\0ugh and fever", "holds NUL bytes"),
        ([], b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40, "stdin: "),
        ([], b"a " * 524_288, "more than the 200,000 characters"),
        ([], "é".encode() * 500_001, "more than the 200,000 characters"),
    ],
)
def test_a_case_that_cannot_be_read_is_exit_code_4_and_says_why(
    arguments: list[str], piped: bytes, expected: str
) -> None:
    assert expected in one_line_error(run("diagnose", *arguments, text=piped), 4)


def test_a_closed_stdin_is_exit_code_4() -> None:
    command = f'exec "{sys.executable}" -m wardround.main diagnose <&-'
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert "no case: give it as an argument" in one_line_error(done, 4)


def test_a_question_to_an_index_that_is_not_there_is_exit_code_5_and_says_what_to_do(tmp_path: Path) -> None:
    message = one_line_error(run("diagnose", "cough and fever", "--index", str(tmp_path / "none")), 5)
    assert str(tmp_path / "none") in message
    assert "cases build" in message


def test_building_without_a_word_on_privacy_is_exit_code_7(tmp_path: Path) -> None:
    records = tmp_path / "r.jsonl"
    records.write_text('{"id": "1", "text": "cough", "diagnoses": [{"name": "Bronchitis"}]}\n')
    message = one_line_error(run("cases", "build", str(records), "--index", str(tmp_path / "index")), 7)
    assert "--deidentified" in message or "deidentified" in message
    assert not (tmp_path / "index").exists()


def test_a_full_device_behind_stdout_is_said_in_a_line() -> None:
    for more in ("", " --json"):
        command = f'exec "{sys.executable}" -m wardround.main icd10 HTN{more} > /dev/full'
        done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
        assert "output cannot be written (No space left on device)" in one_line_error(done, 1)


def test_a_traceback_that_was_asked_for_comes_beside_the_message_and_the_exit_code(tmp_path: Path) -> None:
    done = run("--traceback", "diagnose", "cough and fever", "--index", str(tmp_path / "none"))
    message = done.stderr.decode()
    assert done.returncode == 5
    assert "Traceback" in message
    assert message.splitlines()[-1].startswith("wardround: ")


def test_a_wrong_address_on_the_command_line_is_exit_code_3_and_names_the_key() -> None:
    asked = ("evaluate", "diagnosis", "--records", "a", "--cv", "5", "--llm", "localhost:8000")
    assert "llm.base_url" in one_line_error(run(*asked), 3)
