# SPDX-License-Identifier: Apache-2.0
"""Chooses the local environment in place of a task's image, because there is no Docker here, and no GPU."""

from __future__ import annotations

import base64
import bz2
import io
import itertools
import re
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

from catalog import frameworks
from catalog.environments import Need
from catalog.imports import MOST_BYTES, MOST_FILES, modules_of
from catalog.openpai import checker_problem, image_checker_problem, init_failure
from localcloud.environments.find import Environment, find_environment_for
from localcloud.hosts.assignment import CannotStartError
from localcloud.openpai.tasks import TaskAttempt

# Keys of our own jobs in the text of the job.
_EXTRAS = "trainyard"
_CODE = "trainyard_code"
_MOST_UNPACKED = 64 * 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{16}")
# By a word in the image's name: the framework, and its strategy if environments differ by that.
_BY_NAME = (
    ("horovod", ("horovod", "pytorch")),
    ("pytorch", ("pytorch", None)),
    ("torch", ("pytorch", None)),
    ("tensorflow", ("tensorflow", None)),
    ("dask", ("dask", None)),
    ("ray", ("ray", None)),
)
_WORD = re.compile(r"[a-z]+")


class InitError(CannotStartError):
    """OpenPAI's init container ends with `code`, so the user's container never starts."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def choose_stand_in(attempt: TaskAttempt) -> str:
    """The environment's name; empty if a task does not need one: then it gets the interpreter of this checkout."""
    if problem := image_checker_problem(attempt.image.uri) or checker_problem(attempt.protocol, attempt.role):
        raise InitError(init_failure("image"), f"OpenPAI's image checker refuses the task's image: {problem}")
    framework, strategy, packages = _needed_packages(attempt)
    if not framework:
        return ""
    modules = modules_of(_launch_scripts(attempt))
    chosen = find_environment_for(
        Need(framework, strategy, modules, team_own=framework not in frameworks.framework_names()), packages
    )
    if isinstance(chosen, Environment):
        return chosen.name
    raise CannotStartError(
        f"The image {attempt.image.uri} needs the local environment {chosen.name}: {chosen.reason}."
        f" {chosen.remedy}".strip()
    )


def _needed_packages(attempt: TaskAttempt) -> tuple[str, str | None, str]:
    """Framework, strategy and packages: from the job, or from the name of its image. Both may be hostile."""
    extras = attempt.protocol.get("extras")
    own = extras.get(_EXTRAS) if isinstance(extras, Mapping) else None
    if isinstance(own, Mapping) and isinstance(own.get("framework"), str):
        text = _text_at(own, "packages")
        return own["framework"], _text_at(own, "strategy") or None, (text if _DIGEST.fullmatch(text) else "")
    words = set(_WORD.findall(attempt.image.uri.lower()))
    framework, strategy = next((chosen for word, chosen in _BY_NAME if word in words), ("", None))
    return framework, strategy, ""


def _launch_scripts(attempt: TaskAttempt) -> Iterator[bytes]:
    """The scripts of our own jobs, which have their code in a parameter. It may be hostile."""
    parameters = attempt.protocol.get("parameters")
    packed = parameters.get(_CODE) if isinstance(parameters, Mapping) else None
    if not isinstance(packed, str):
        return
    try:
        content = bz2.BZ2Decompressor().decompress(base64.b64decode(packed), _MOST_UNPACKED)
        # Without transparent decompression, to which no limit would apply.
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for member in itertools.islice(archive, MOST_FILES):
                script = archive.extractfile(member) if member.isfile() and member.name.endswith(".py") else None
                if script and member.size <= MOST_BYTES:
                    yield script.read()
    except (OSError, ValueError, EOFError, tarfile.TarError):
        return


def _text_at(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
