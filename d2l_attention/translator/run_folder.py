"""The folder of a run, in which no file is ever half-written."""

import csv
from datetime import datetime
import hashlib
import io
import json
import os
from pathlib import Path
import socket

from d2l_attention._atomic import is_unfinished, write_whole
from d2l_attention.datasets.files import named
import filelock
import numpy as np

LOCK, HOLDER = ".lock", ".holder"
# The paths among the settings, and the checksums, which are compared instead.
TEXTS = {"corpus": "corpus_sha256", "test_corpus": "test_corpus_sha256"}
OURS = ("settings.json", LOCK, HOLDER)  # of a run that is beginning


def csv_bytes(columns, rows):
    """The content of a CSV file with a header."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    return text.getvalue().encode()


class RunError(Exception):
    """A run cannot begin, go on or be read. Nothing was overwritten."""


def changed_texts(before, now):
    """The files whose path is the same in two settings, but not their text.

    Args:
        before: Dict, `Settings.identity()` when a run began.
        now: Dict, the same of today.

    Returns:
        List of str, their names.
    """
    return [
        named(now[name] or "the shipped corpus")
        for name, checksum in TEXTS.items()
        if before.get(checksum) != now.get(checksum)
        and before.get(name) == now[name]
    ]


class RunFolder:
    """Settings, checkpoint, history and results of one run.

    Each file is written beside its place and renamed. A reader, or the next
    start, finds the old file or the new file, never a part of one. One process
    at a time has the folder open; when it ends, however it ends, the system
    releases the folder.

    Args:
        path: The folder. `open` makes it where there is none.
    """

    def __init__(self, path):
        self.path = Path(path)
        self._lock = filelock.FileLock(self._at(LOCK))

    def check(self, identity):
        """Refuse the folder if a run of these settings has no place in it.

        Args:
            identity: Dict, `Settings.identity()`.

        Raises:
            RunError: If the folder holds a run of other settings, or files
                of something else.
        """
        if self._at("settings.json").exists():
            self._check_settings(identity)
        # Another worker of the same run may be writing its settings now.
        elif self.path.exists() and (
            not self.path.is_dir()
            or any(
                entry.name not in OURS and not is_unfinished(entry)
                for entry in self.path.iterdir()
            )
        ):
            raise RunError(
                f"{self.path} is no run folder, and not empty. Name another."
            )

    def open(self, identity):
        """Take the folder for a run of these settings, new or continued.

        Args:
            identity: Dict, `Settings.identity()`.

        Raises:
            RunError: If the folder holds a run of other settings or files of
                something else, cannot be made, or is open in another process.
        """
        self.check(identity)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise RunError(
                f"{self.path} is in use by {self._holder()}. Wait until it "
                "ends, stop it, or name another folder."
            ) from error
        except OSError as error:
            raise RunError(f"Could not open {self.path}: {error}") from error
        now = datetime.now().isoformat(" ", "minutes")
        who = f"process {os.getpid()} of {socket.gethostname()}, since {now}"
        self.write(HOLDER, who.encode())
        for entry in filter(is_unfinished, self.path.iterdir()):
            entry.unlink()  # left by a write that was killed
        if not self._at("settings.json").exists():
            self.write_json("settings.json", identity)

    def close(self):
        """Release the folder, if it is open."""
        if self._lock.is_locked:
            self._at(HOLDER).unlink(missing_ok=True)
            self._lock.release(force=True)

    def _holder(self):
        try:
            return self._at(HOLDER).read_text(encoding="utf-8")
        except OSError:
            return "another process"

    def _check_settings(self, identity):
        found = self.read_json("settings.json")
        if not isinstance(found, dict):
            raise RunError(f"{self._at('settings.json')} holds no settings.")
        changed = [
            f"{text} has changed since this run began"
            for text in changed_texts(found, identity)
        ]
        others = [
            f"{name}: {found.get(name)!r} there, {identity.get(name)!r} now"
            for name in sorted({*found, *identity} - {*TEXTS.values()})
            if all(  # the path of a text, and its checksum
                found.get(x) != identity.get(x)
                for x in (name, TEXTS.get(name, name))
            )
        ]
        if others:
            longer = found.get("epochs") != identity.get("epochs")
            raise RunError(
                f"{self.path} holds a run of other settings "
                f"({'; '.join([*changed, *others])}). Name another folder."
                + f" To train longer, add --resume-from {self.path}."
                * longer
            )
        if changed:
            raise RunError(
                f"{self.path}: {' and '.join(changed)}. Put the old text back, "
                "or name another folder."
            )

    def write(self, name, data):
        """Write bytes to a file, all or none.

        Args:
            name: Str, name of the file in the folder.
            data: Bytes.

        Raises:
            RunError: If they cannot be written; the old file stays.
        """
        try:
            write_whole(self._at(name), data)
        except OSError as error:
            raise RunError(f"Could not write: {error}") from error

    def read(self, name):
        """The bytes of a file; None if there is no such file."""
        path = self._at(name)
        return path.read_bytes() if path.exists() else None

    def write_json(self, name, value):
        text = json.dumps(value, indent=2, ensure_ascii=False)
        self.write(name, text.encode() + b"\n")

    def read_json(self, name):
        try:
            return json.loads(self._at(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(
                f"Could not read {self._at(name)}: {error}"
            ) from error

    def write_csv(self, name, columns, rows):
        self.write(name, csv_bytes(columns, rows))

    def save_checkpoint(self, arrays, position, name="checkpoint"):
        """Save the state of a run.

        Args:
            arrays: Dict of name to array.
            position: Where the run stands, anything that JSON can hold.
            name: Str, name of the file.

        Raises:
            RunError: If the file cannot be written; the old one stays.
        """
        payload = io.BytesIO()
        text = np.frombuffer(json.dumps(position).encode(), "uint8")
        np.savez(payload, **{"": text}, **arrays)
        payload = payload.getvalue()
        self.write(name, self._digest(payload) + payload)

    def load_checkpoint(self, name="checkpoint"):
        """Read the state of a run.

        Args:
            name: Str, name of the file.

        Returns:
            `(arrays, position)` as in `save_checkpoint`; None if there is no
            checkpoint yet.

        Raises:
            RunError: If the file is damaged, is a checkpoint of another run,
                or is no checkpoint.
        """
        path = self._at(name)
        if not path.exists():
            return None
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RunError(f"Could not read {path}: {error}") from error
        digest, payload = content[:64], content[64:]
        if self._digest(payload) != digest:
            raise RunError(
                f"{path} is damaged, or no checkpoint of a run of these "
                "settings. The file was left as it is. Move it away to begin "
                "anew."
            )
        with np.load(io.BytesIO(payload)) as found:
            arrays = {name: found[name] for name in found.files}
        return arrays, json.loads(arrays.pop("").tobytes())

    def _digest(self, payload):
        """A checksum that includes the settings, which name the run."""
        path = self._at("settings.json")
        settings = path.read_bytes() if path.exists() else b""
        return hashlib.sha256(settings + payload).hexdigest().encode()

    def _at(self, name):
        return self.path / name
