# SPDX-License-Identifier: Apache-2.0
"""OpenPAI's job protocol, version 2: its text, its rules, and what a cluster makes of a job's commands.

`check` holds a plan to `problems`, and the provider asks it before it sends a job. The local cluster refuses what a
cluster refuses: `refusals`.
"""

from components.openpai.protocol.commands import entrypoint, runtime_text, with_secrets
from components.openpai.protocol.judge import obstacles, problems, refusals
from components.openpai.protocol.rules import Problem, controller_name, named_storages
from components.openpai.protocol.text import (
    LONGEST_TEXT,
    NotAJobError,
    NotYamlError,
    masked,
    parse,
    shares_secrets,
    shown,
    text_of,
)

__all__ = [
    "LONGEST_TEXT",
    "NotAJobError",
    "NotYamlError",
    "Problem",
    "controller_name",
    "entrypoint",
    "masked",
    "named_storages",
    "obstacles",
    "parse",
    "problems",
    "refusals",
    "runtime_text",
    "shares_secrets",
    "shown",
    "text_of",
    "with_secrets",
]
