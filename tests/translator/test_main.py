"""`python -m d2l_attention` knows its commands, and passes their status on."""

from pathlib import Path
import subprocess
import sys

from d2l_attention.__main__ import COMMANDS, main
from d2l_attention.translator import commands
import pytest


def test_every_file_of_the_folder_is_a_command():
    files = Path(commands.__file__).parent.glob("*.py")
    assert {path.stem for path in files} - {"__init__"} == COMMANDS.keys()


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    for name in ("train", "translate"):
        assert any(line.split()[:1] == [name] for line in lines), name


def test_an_unknown_command_is_refused_and_the_known_ones_are_named(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["transcribe", "run"])
    assert ended.value.code == 2
    message = capsys.readouterr().err.splitlines()[-1]
    for name in ("transcribe", "train", "translate"):
        assert name in message


def test_a_command_that_fails_says_why_in_one_line(tmp_path, capsys):
    run = str(tmp_path / "nowhere")
    assert main(["translate", run, "x"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert run in line


def test_ctrl_c_ends_a_command_without_a_traceback(monkeypatch, capsys):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "d2l_attention.translator.commands.translate.main", stop
    )
    assert main(["translate", "run"]) == 130
    assert capsys.readouterr().err == "Interrupted.\n"


TALKATIVE = """
import runpy, sys, types, warnings
def say(_):
    warnings.warn("something odd")
    print("x" * 10**6)
command = types.ModuleType("d2l_attention.translator.commands.translate")
command.main = say
sys.modules[command.__name__] = command
sys.argv[1:] = ["translate", "run"]
runpy.run_module("d2l_attention", run_name="__main__")
"""


def test_a_reader_that_has_read_enough_is_no_error():
    command = [sys.executable, "-c", TALKATIVE]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdout.read(1)
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    # a warning is a line, without the code that warns
    assert "\nWarning: something odd\n" in f"\n{said}" and "say" not in said
    assert process.returncode == 0
