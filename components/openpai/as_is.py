# SPDX-License-Identifier: Apache-2.0
"""A task that runs the team's command as it is written, for scripts that were made for OpenPAI.

Roles and port labels have the team's names, so programs find each other by OpenPAI's variables. The command is bash's,
with `<% $parameters.name %>` and the like as OpenPAI fills them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.openpai.plain import folders, own_rank, quoted, within

_END = "TRAINYARD_COMMAND"
# As the runtime begins a command.
_STRICT = "-o errexit -o nounset -o pipefail"


def as_is_commands(launch: Mapping[str, Any], store: str, before: str, limit: int) -> Iterator[str]:
    """`store`: the folder of the storage, as tasks see it; empty if there is none. `before`: words before the program,
    as `timeout 60m`, which end it after `limit` seconds."""
    if store:
        yield own_rank(launch)
        yield from folders(launch, store)
    text, *args = launch["command"]
    words = " ".join([text.rstrip(), *map(quoted, args)])
    end = _END
    while end in words.splitlines():
        end += "_"
    yield f"trainyard_command=; IFS= read -r -d '' trainyard_command <<'{end}' || true\n{words}\n{end}"
    yield from within(limit, f'{before} bash {_STRICT} -c "$trainyard_command" || trainyard_code=$?')
