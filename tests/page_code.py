"""The code of the pages, and what it prints."""

from pathlib import Path
import re

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(
    r"^```(python|text|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(page):
    text = (ROOT / page).read_text("utf-8")
    return PYTHON.findall(text)


def run(code, names):
    exec(compile(code, "<block>", "exec"), names)
    plt.close("all")


def mended(code, diff):
    """The code after a diff whose old lines stand in it once."""
    old, new = (
        "".join(f"{x[1:]}\n" for x in diff.splitlines() if x[0] in marks)
        for marks in (" -", " +")
    )
    assert code.count(old) == 1, diff
    return code.replace(old, new)


def run_shown(shown, names, capsys):
    """Run the code in order; each block of text is what it printed."""
    code = ""
    for kind, text in shown:
        if kind == "text":
            assert capsys.readouterr().out == text
            continue
        code = mended(code, text) if kind == "diff" else text
        run(code, names)
    assert not capsys.readouterr().out, "printed, and not shown"
