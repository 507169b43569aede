# SPDX-License-Identifier: Apache-2.0
"""OpenPAI's job protocol, version 2: its text, its rules, and what a cluster makes of a job's commands.

`check` holds a plan to it, the provider asks it before it sends a job, and the local cluster asks it again.
"""

from provider.openpai.protocol.commands import entrypoint, runtime_text, with_secrets
from provider.openpai.protocol.judge import problems
from provider.openpai.protocol.rules import Problem, controller_name
from provider.openpai.protocol.text import LONGEST_TEXT, NotAJobError, masked, parse, text_of

__all__ = [
    "LONGEST_TEXT",
    "NotAJobError",
    "Problem",
    "controller_name",
    "entrypoint",
    "masked",
    "parse",
    "problems",
    "runtime_text",
    "text_of",
    "with_secrets",
]
