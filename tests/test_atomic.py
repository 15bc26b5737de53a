"""A write that fails changes nothing, and leaves nothing behind."""

import os
from pathlib import Path

from d2l_attention._atomic import is_unfinished, write_whole
import pytest


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "scores.json"
    path.write_bytes(b"old")
    return path


def test_a_file_is_replaced_by_one_written_beside_it(path, monkeypatch):
    real_replace, seen = os.replace, []

    def replace(source, target):
        seen.append((Path(source), path.read_bytes()))
        real_replace(source, target)

    monkeypatch.setattr(os, "replace", replace)
    write_whole(str(path), b"new")
    assert path.read_bytes() == b"new"
    ((beside, content),) = seen
    assert content == b"old"  # until the new one was whole
    assert beside.parent == path.parent and is_unfinished(beside)
    assert not is_unfinished(path)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_alone(name, path, monkeypatch):
    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, name, fail)
    message = "No space left.*; the old file is unchanged"
    with pytest.raises(OSError, match=message):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_a_write_of_no_bytes_leaves_the_old_file_alone(path):
    with pytest.raises(TypeError):
        write_whole(path, "text")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    path = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError) as raised:
        write_whole(path, b"new")
    assert raised.value.filename == str(path)  # not that of the part
    assert ".part" not in str(raised.value)
    assert "old file" not in str(raised.value)  # there is none
    assert os.listdir(tmp_path) == []
