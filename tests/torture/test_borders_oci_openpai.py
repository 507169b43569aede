# SPDX-License-Identifier: Apache-2.0
"""Requests for every place where two parsers could understand a request differently: exactly the call that was checked
is carried out.

No request to the local OCI or OpenPAI changes or shows anything that its caller was not granted. A failure names the
seed: `TRAINYARD_FIRST_SEED=… TRAINYARD_TORTURE=1` repeats it. With a mistake put back into a copy of the cloud, the
same requests find it.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from localcloud import control
from localcloud.control import Cloud
from tests.support.borders_oci import OciBorder
from tests.support.borders_openpai import OpenPaiBorder, shows
from tests.support.counts import FIRST, wanted
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
REQUESTS = wanted(sample=200, full=20_000)
Border = OciBorder | OpenPaiBorder
# The share of requests that has to reach a handler: others only test refusals.
_FEWEST_ANSWERED = 0.1
# The most requests until a mistake that was put back is found.
_MOST_UNTIL_FOUND = 2000
# What the server imports.
_ROOMS = ("catalog", "components", "launcher", "localcloud", "provider", "trainyard")


@dataclass(frozen=True)
class Mistake:
    """A mistake: a text of the cloud's code, and its wrong replacement."""

    border: Callable[[Cloud], Border]
    file: str
    right: str
    wrong: str


MISTAKES = {
    "an upload by its id alone": Mistake(
        OciBorder,
        "localcloud/oci/services/object_storage/uploads.py",
        """WHERE id = ? AND bucket = ? AND name = ?",
        (identifier, bucket.id, call.params["objectName"]),""",
        """WHERE id = ?",
        (identifier,),""",
    ),
    "the registry's uploads in one folder": Mistake(
        OciBorder, "localcloud/oci/registry.py", "hashlib.sha256(self.repository.encode()).hexdigest()", '"all"'
    ),
    "a copy judged by its source alone": Mistake(
        OciBorder, "catalog/references.toml", '"body.destinationBucket" = "destination"', ""
    ),
    "secrets hidden by a pattern over the text": Mistake(
        OpenPaiBorder,
        "localcloud/openpai/submitting.py",
        "return protocol, json.dumps(mask_job_secrets(protocol))",
        """import re
    hidden = re.sub(r"(?ms)^(secrets:).*?(?=^\\w|\\Z)", "secrets: x\\n", text)
    return protocol, json.dumps(parse_job_text(hidden))""",
    ),
    "anybody's job": Mistake(
        OpenPaiBorder,
        "localcloud/openpai/job_calls.py",
        "if job.user != person.name and not person.admin:",
        "if False:",
    ),
}


def found(border: Border, requests: int) -> tuple[str, Counter[int]]:
    """What the first wrong request changed or showed. Empty if there was none."""
    before, statuses = border.outside(), Counter[int]()
    for seed in range(FIRST, FIRST + requests):
        asked, status, content = border.ask(random.Random(seed))
        told = f"seed {seed}: {status} for {asked}"
        statuses[status // 100] += 1
        if border.outside() != before:
            return f"another's was changed. {told}", statuses
        if shows(content, [border.canary]):
            return f"another's was shown. {told}", statuses
        if status >= 500 and not border.fails_itself(status, content):
            return f"the server failed. {told}", statuses
    return "", statuses


@pytest.mark.parametrize("border", [OciBorder, OpenPaiBorder])
def test_no_request_changes_anything_that_its_sender_was_not_granted(
    border: Callable[[Cloud], Border], shared_cloud: Cloud
) -> None:
    with closing(border(shared_cloud)) as there:
        wrong, statuses = found(there, REQUESTS)
    assert not wrong
    assert statuses[2] > REQUESTS * _FEWEST_ANSWERED, statuses
    assert "Traceback" not in (shared_cloud.home / "server.log").read_text(errors="replace")


@contextmanager
def _mistaken(mistake: Mistake, folder: Path) -> Iterator[Cloud]:
    """A cloud of a copy of the checkout with the mistake in it."""
    for room in _ROOMS:
        shutil.copytree(ROOT / room, folder / "copy" / room, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "copy" / mistake.file
    text = file.read_text("utf-8")
    assert text.count(mistake.right) == 1
    file.write_text(text.replace(mistake.right, mistake.wrong), "utf-8")
    home = folder / "cloud"
    environment = {**os.environ, "PYTHONPATH": str(folder / "copy")}
    words = [sys.executable, "-P", "-m", "localcloud.serve", str(home), "0"]
    with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            cloud = eventually(lambda: control.find_running_cloud(home), bool)
            assert cloud is not None
            yield cloud
        finally:
            server.terminate()


def test_each_mistake_has_its_place_in_the_code() -> None:
    moved = [
        name for name, mistake in MISTAKES.items() if (ROOT / mistake.file).read_text("utf-8").count(mistake.right) != 1
    ]
    assert not moved, "the code has another text here now: write it as `right`"


@pytest.mark.torture
@pytest.mark.parametrize("name", MISTAKES)
def test_a_defect_that_is_put_back_is_found(name: str, tmp_path: Path) -> None:
    with _mistaken(MISTAKES[name], tmp_path) as cloud, closing(MISTAKES[name].border(cloud)) as there:
        wrong, _ = found(there, _MOST_UNTIL_FOUND)
    print(f"{name}: {wrong}")  # With its seed.
    assert wrong.startswith("another's was")
