"""Plant each fault in a copy of the repository; do the tests kill it?

    python tests/faults/plant.py                     # all
    python tests/faults/plant.py mask heatmaps/      # by a word or a file
    python tests/faults/plant.py --again survived --wider

The verdicts stand in killed.csv: killed (a test failed), killed by time,
survived, or an error, where nothing can be said: no test was collected, or
the test that failed fails without the fault too.
"""

import argparse
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
import csv
import importlib.util
import itertools
import multiprocessing
import os
from pathlib import Path
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("killed.csv")
COLUMNS = ("sentence", "file", "verdict", "test", "seconds")
PYTEST = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider")
WRONG_PACKAGE = 70  # exit status of a run that would test another checkout
LIMIT = 600  # seconds of one run; the machine may be shared
CONTRACTS = [  # of all layers
    f"tests/test_{name}.py"
    for name in ("causality", "masks_arrive", "keras_citizen", "doctests")
]

# TensorFlow is imported once, by a process from which all runs are forked.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tensorflow", "keras"])


class Fault(NamedTuple):
    sentence: str  # what is now wrong
    file: str
    old: str  # occurs once in the file
    new: str
    tests: list  # files, node ids or options of pytest; the mirror first


def read_faults():
    """Return all faults, from the .toml files beside this one."""
    tables = map(Path.read_text, sorted(TABLE.parent.glob("*.toml")))
    return [
        Fault(**fault)
        for table in tables
        for fault in tomllib.loads(table)["fault"]
    ]


def planted(fault, text):
    """Return the text with the fault in it."""
    number = text.count(fault.old)
    if number != 1:
        raise ValueError(
            f"{fault.sentence!r}: `old` must occur once in {fault.file}. "
            f"Received: {number} times."
        )
    return text.replace(fault.old, fault.new)


def files_of_tests(fault):
    """Return the files that are named among the tests of a fault."""
    names = (test.split("::")[0] for test in fault.tests)
    return list(dict.fromkeys(x for x in names if x.startswith("tests/")))


def wider(fault):
    """Return whole files, the folder that mirrors the room, and contracts."""
    files = files_of_tests(fault)
    room = str(Path(files[0]).parent)
    rooms = [] if room == "tests" else [room]
    contracts = CONTRACTS if fault.file.startswith("d2l_attention") else []
    return list(dict.fromkeys([*rooms, *files, *contracts]))


class Copy:
    """The tracked files in a temporary folder."""

    stamps = itertools.count(1_000_000_000)

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="faults_"))
        command = ["git", "ls-files", "-z"]
        names = subprocess.check_output(command, cwd=ROOT, text=True)
        for name in filter(None, names.split("\0")):
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.path / name)

    def judge(self, fault, tests):
        """Return the row of a fault."""
        whole = (ROOT / fault.file).read_text(encoding="utf-8")
        self._write(fault.file, planted(fault, whole))
        started = time.monotonic()
        code, failed = self.run(tests)
        self._write(fault.file, whole)
        verdict = {0: "survived", 1: "killed", None: "killed by time"}.get(
            code, f"error: pytest ended with {code}"
        )
        seconds = round(time.monotonic() - started)
        first = failed[0] if failed else ""
        return [fault.sentence, fault.file, verdict, first, seconds]

    def run(self, tests, options=PYTEST):
        """Return pytest's exit status (None: too slow) and what failed."""
        output = self.path / "pytest.out"
        process = CONTEXT.Process(
            target=_run, args=(self.path, output, [*options, *tests])
        )
        process.start()
        process.join(LIMIT)
        code = process.exitcode
        if code is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
        lines = output.read_text(errors="replace").splitlines()
        failed = [
            line.split(" ", 1)[1].split(" - ")[0]
            for line in lines
            if line.startswith(("FAILED tests/", "ERROR tests/"))
        ]
        return code, failed

    def _write(self, name, text):
        path = self.path / name
        path.write_text(text, encoding="utf-8")
        # a time of its own, or Python would take the old bytecode for new
        stamp = next(self.stamps)
        os.utime(path, (stamp, stamp))


def _run(folder, output, arguments):
    """Run pytest in the copy, as `python -m pytest` would."""
    os.setsid()  # so that all it starts can be ended
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    elsewhere = {str(ROOT), str(TABLE.parent), ""}
    sys.path[:] = [str(folder), *(x for x in sys.path if x not in elsewhere)]
    package = importlib.util.find_spec("d2l_attention").origin
    if not Path(package).is_relative_to(folder):
        sys.exit(WRONG_PACKAGE)
    import pytest

    sys.exit(int(pytest.main(arguments)))


def check_clean(copy, rows):
    """Make errors of kills by a test that fails without a fault too."""
    tests = sorted({row[3] for row in rows if row[2] == "killed"})
    if not tests:
        return
    options = [x for x in PYTEST if x != "-x"]
    code, failed = copy.run(tests, options)
    if code not in (0, 1):  # a name that pytest cannot read back
        tests = sorted({test.split("[")[0] for test in tests})
        code, failed = copy.run(tests, options)
    for row in rows:
        if row[2] == "killed" and code not in (0, 1):
            row[2] = f"error: without the fault, pytest ends with {code}"
        elif row[2] == "killed" and any(
            row[3] in (test, test.split("[")[0]) for test in failed
        ):
            row[2] = "error: the test fails without the fault too"


def read_table():
    if not TABLE.exists():
        return {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row[0]: row for row in list(csv.reader(file))[1:]}


def write_table(rows, faults):
    """Write the rows of the faults that there are, in the faults' order."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        names = [fault.sentence for fault in faults]
        table.writerows(rows[name] for name in names if name in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "words", nargs="*", help="of a sentence, or of a file's path"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--again",
        metavar="VERDICT",
        help="only those of this verdict in killed.csv; `none` has none yet",
    )
    parser.add_argument(
        "--wider", action="store_true", help="whole files and folders of tests"
    )
    arguments = parser.parse_args()
    every, before = read_faults(), read_table()
    chosen = [
        fault
        for fault in every
        if not arguments.words
        or any(x in fault.sentence + fault.file for x in arguments.words)
    ]
    if arguments.again:
        none = ["", "", "none"]
        chosen = [
            fault
            for fault in chosen
            if before.get(fault.sentence, none)[2].startswith(arguments.again)
        ]
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    copies, lock, rows = queue.SimpleQueue(), threading.Lock(), []
    for _ in range(arguments.jobs):
        copies.put(Copy())

    def judge(fault):
        copy = copies.get()
        row = copy.judge(
            fault, wider(fault) if arguments.wider else fault.tests
        )
        copies.put(copy)
        with lock:
            rows.append(row)
            write_table(before | {row[0]: row for row in rows}, every)
            print(f"{row[2]:<10}{row[4]:>5} s  {row[0]}", flush=True)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(judge, chosen))
    check_clean(copy := copies.get(), rows)
    copies.put(copy)
    while not copies.empty():
        shutil.rmtree(copies.get().path)
    write_table(before | {row[0]: row for row in rows}, every)
    counts = Counter(row[2].split(":")[0] for row in rows)
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.items()))


if __name__ == "__main__":
    main()
