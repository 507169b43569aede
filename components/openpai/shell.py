# SPDX-License-Identifier: Apache-2.0
"""Text for bash, inside a job's command. A cluster reads the command too: `<%` begins a reference there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from components.openpai.stack import END_OF_PARAMETER

_SPECIAL = re.compile(r"[\\\"$`]")


def quoted(text: str) -> str:
    """One word that no character of the text can end."""
    return shlex.quote(text).replace("<%", "<''%")


def interpolated(text: str, values: Mapping[str, str]) -> str:
    """One word in which `{name}` is what bash makes of the value. All else stands for itself."""
    names = "|".join(re.escape(name) for name in values)
    parts = re.split(r"\{(" + names + r")\}", text) if values else [text]
    shown = (values[part] if number % 2 else _SPECIAL.sub(r"\\\g<0>", part) for number, part in enumerate(parts))
    return '"' + "".join(shown).replace("<%", '<""%') + '"'


def document(value: Mapping[str, Any]) -> str:
    """JSON as one word, without letters that bash or a cluster would read."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "'" + text.replace("<", "\\u003c").replace("'", "\\u0027") + "'"


def exported(name: str, word: str) -> str:
    return f"export {name}={word}"


def secret(name: str, key: str) -> str:
    """A variable from a secret in Base64: no letter of the secret can end a quotation, and line breaks stay."""
    return (
        f'{name}="$(printf %s \'<% $secrets.{key} %>\' | base64 -d; printf x)"; {name}="${{{name}%x}}"; export {name}'
    )


def parameter(name: str) -> str:
    """A variable from a parameter, as people may have changed it in the portal. Line breaks at its end stay."""
    end = END_OF_PARAMETER
    text = f"$(cat <<'{end}'\n<% $parameters.{name} %>\n{end}\nprintf x)"
    return f'{name}="{text}"; {name}="${{{name}%?x}}"; export {name}'


def within(seconds: int, runs: str) -> tuple[str, ...]:
    """Ends as `runs` says in `trainyard_code`. What its time limit had to kill ends with 124: OpenPAI would try 137
    again, and not count it."""
    return (
        f"trainyard_until=$((SECONDS + {seconds})); trainyard_code=0",
        runs,
        'if [ "$trainyard_code" = 137 ] && [ "$SECONDS" -ge "$trainyard_until" ]; then trainyard_code=124; fi',
        'exit "$trainyard_code"',
    )
