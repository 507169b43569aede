# SPDX-License-Identifier: Apache-2.0
"""How large an environment OCI allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.oci.checks.registry import rule
from components.oci.stack import OciStack
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts
from schemas.model import EnvValue

# The limit for all variables of a run, names and values together. Trainyard's own take up to a few thousand.
MOST_CHARACTERS = 20_000
OUR_CHARACTERS = 3_000


@rule("TY505", "more environment variables than OCI allows")
def too_much(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, one in job.runs.items():
            # The environment also holds the command and its arguments: once for the launcher, once for ADS.
            words = 2 * sum(len(word) + 4 for word in (job.command, *one.args))
            largest = max((_characters({**job.env, **role.env, **one.env}) for role in job.roles.values()), default=0)
            if largest + words + OUR_CHARACTERS > MOST_CHARACTERS:
                message = f"variables, command and arguments have more than {MOST_CHARACTERS} characters on each node"
                remedy = "keep long values in the bucket, or in a file of the code folder"
                yield Wrong(at("jobs", name, "runs", run), message, remedy)


def _characters(variables: Mapping[str, EnvValue]) -> int:
    texts = ((key, value if isinstance(value, str) else value.value or "") for key, value in variables.items())
    return sum(len(key) + len(value) for key, value in texts)
