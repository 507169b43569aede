# SPDX-License-Identifier: Apache-2.0
"""The inputs that only runs on AWS have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.platform.calls import InputFailure
from components.platform.inputs import OwnInputs, RunInput
from components.platform.values import UNKNOWN, Properties

REQUIRED = ("bucket", "job", "region", "stack")
KEYS = (*REQUIRED, "logGroup", "secret", "code", "launcher")
_TEXT = {"type": "string"}


def _aws_input_failures(inputs: Properties) -> Iterator[InputFailure]:
    cluster = inputs.get("cluster")
    if cluster is None or cluster is UNKNOWN:
        return
    if not isinstance(cluster, Mapping):
        yield InputFailure("cluster", f"This is an object: {', '.join(KEYS)}.")
        return
    for key in REQUIRED:
        if cluster.get(key) in (None, ""):
            yield InputFailure(f"cluster.{key}", f"`{key}` is missing.")
    for key in sorted(set(cluster) - set(KEYS)):
        yield InputFailure(f"cluster.{key}", f"A cluster has no `{key}`; it has {', '.join(KEYS)}.")


INPUTS = OwnInputs(
    inputs={
        "cluster": RunInput(
            {"type": "object", "additionalProperties": _TEXT, "description": f"Text by name: {', '.join(KEYS)}"},
            required=True,
        ),
        # The secret's name never changes, so its version is an input: a new value starts the run again.
        "secretVersion": RunInput(_TEXT),
    },
    stands_on="cluster",
    failures=_aws_input_failures,
)
