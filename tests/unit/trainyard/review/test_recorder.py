# SPDX-License-Identifier: Apache-2.0
"""The process that records programs survives anything that the code of a revision does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trainyard.review.recorder import RecordingError, RecordingProcess

# Answers, and leaves a process behind that keeps its output open.
_LINGERS = """\
import os, time
if os.fork():
    print('{}', flush=True)
time.sleep(60)
"""


def record_once(tree: Path) -> None:
    with RecordingProcess(tree) as recording:
        recording.record(tree / "Pulumi.one.yaml", "oci")


def test_a_program_that_goes_on_does_not_keep_the_review(tmp_path: Path) -> None:
    place = tmp_path / "trainyard" / "review"
    place.mkdir(parents=True)
    (place.parent / "__init__.py").touch()
    (place / "__init__.py").touch()
    (place / "record.py").write_text(_LINGERS, "utf-8")
    began = time.monotonic()
    with pytest.raises(RecordingError, match="snapshots of another format"):
        record_once(tmp_path)
    assert time.monotonic() - began < 45
