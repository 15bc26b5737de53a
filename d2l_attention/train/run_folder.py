"""A folder of one run, in which nothing is ever half-written."""

import csv
import hashlib
import io
import json
import os
from pathlib import Path
import uuid

import numpy as np


class RunError(Exception):
    """Why a run cannot begin, go on or be read; nothing was overwritten."""


class RunFolder:
    """Settings, checkpoint, history and results of one run.

    Each file is written beside its place and renamed, so that a reader, or
    the next start, finds the old one or the new one and nothing between.

    Args:
        path: The folder; made where there is none.
    """

    def __init__(self, path):
        self.path = Path(path)

    def check(self, identity):
        """Whether a run of these settings may begin or go on here.

        Raises:
            RunError: If there is a run of other settings, or something else.
        """
        if self._at("settings.json").exists():
            self._check_settings(identity)
        # Another worker of the same run may have written its settings now.
        elif self.path.exists() and (
            not self.path.is_dir()
            or any(
                entry.name != "settings.json" and not _is_beside(entry)
                for entry in self.path.iterdir()
            )
        ):
            raise RunError(
                f"{self.path} is no run folder, and not empty. Name another."
            )

    def open(self, identity):
        """Take the folder for a run of these settings, or continue it.

        Raises:
            RunError: As `check`, or if the folder cannot be made.
        """
        self.check(identity)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"Could not make {self.path}: {error}") from error
        for entry in filter(_is_beside, self.path.iterdir()):
            entry.unlink()  # of a write that was killed
        if not self._at("settings.json").exists():
            self.write_json("settings.json", identity)

    def _check_settings(self, identity):
        found = self.read_json("settings.json")
        if not isinstance(found, dict):
            raise RunError(f"{self._at('settings.json')} holds no settings.")
        names = sorted({*found, *identity})
        differ = [
            f"{name}: {found.get(name)!r} there, {identity.get(name)!r} now"
            for name in names
            if found.get(name) != identity.get(name)
        ]
        if differ:
            raise RunError(
                f"{self.path} holds a run of other settings "
                f"({'; '.join(differ)}). Name another folder."
            )

    def write(self, name, data):
        """Bytes, all or none."""
        target = self._at(name)
        beside = target.with_name(f".{name}.{uuid.uuid4().hex}.part")
        try:
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise RunError(
                f"Could not write {target}: {error}. What was there before "
                "is unchanged."
            ) from error

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
        text = io.StringIO(newline="")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(columns)
        table.writerows(rows)
        self.write(name, text.getvalue().encode())

    def save_checkpoint(self, arrays, position):
        """Arrays by name, and where the run stands (anything for JSON)."""
        payload = io.BytesIO()
        text = np.frombuffer(json.dumps(position).encode(), "uint8")
        np.savez(payload, **{"": text}, **arrays)
        payload = payload.getvalue()
        self.write("checkpoint", self._digest(payload) + payload)

    def load_checkpoint(self):
        """`(arrays, position)`, or None before the first one.

        Raises:
            RunError: If the file is damaged, of another run or no checkpoint.
        """
        path = self._at("checkpoint")
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
                "settings. It was left as it is; move it away to begin anew."
            )
        with np.load(io.BytesIO(payload)) as found:
            arrays = {name: found[name] for name in found.files}
        return arrays, json.loads(arrays.pop("").tobytes())

    def _digest(self, payload):
        """Of the settings too: a checkpoint belongs to its run."""
        path = self._at("settings.json")
        settings = path.read_bytes() if path.exists() else b""
        return hashlib.sha256(settings + payload).hexdigest().encode()

    def _at(self, name):
        return self.path / name


def _is_beside(entry):
    """Whether a path is of a file that is being written, or never was."""
    return entry.name.startswith(".") and entry.name.endswith(".part")
