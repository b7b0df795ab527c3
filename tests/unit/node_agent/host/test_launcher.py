"""What is kept of what a container prints."""

import errno
import os
from pathlib import Path

import pytest

from podyard.node_agent.host import launcher


def test_what_a_full_disk_takes_of_a_log_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = launcher._Log(str(tmp_path / "0.log"), 1000)
    log.write(b"one\n")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        log.write(b"two\n")
        log.write(b"three\n")
    log.write(b"four\n")
    assert (tmp_path / "0.log").read_text() == "one\n\n[10 bytes could not be stored]\nfour\n"


def test_a_log_begins_anew_before_it_is_too_long(tmp_path: Path):
    log = launcher._Log(str(tmp_path / "0.log"), 10)
    for word in (b"aaaaaa", b"bbbb", b"cccccc", b"dddddd"):
        log.write(word)
    assert (tmp_path / "0.log").read_text() == "dddddd"
    assert (tmp_path / "0.log.1").read_text() == "cccccc"
    log.write(b"0123456789" * 3 + b"end")
    assert (tmp_path / "0.log").read_text() == "end"
    assert (tmp_path / "0.log.1").read_text() == "0123456789"


def test_a_record_is_as_long_as_it_ever_was_however_long_its_error_is(tmp_path: Path):
    with (tmp_path / "run.json").open("w+b", buffering=0) as file:
        for error in ("", "x" * 5000, '"\n' * 900):
            launcher.write_record(file.fileno(), {"code": 128, "error": error})
            assert os.fstat(file.fileno()).st_size == launcher.RECORD_BYTES
            assert launcher.json.loads((tmp_path / "run.json").read_text())["code"] == 128
