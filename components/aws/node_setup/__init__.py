# SPDX-License-Identifier: Apache-2.0
"""The user data of a cluster's machines: cloud-config, the same for all machines of a job. Pure.

Nothing in it is secret, and nothing depends on a run or on the number of nodes (docs/decisions/0021).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from string import Template
from textwrap import indent

from catalog.aws import accelerator_of_machine, aws_machine
from schemas.convert import camel_case

# The largest user data that EC2 accepts, in bytes before base64.
LARGEST = 16384
_TEMPLATE = Path(__file__).with_name("cloud-config.yaml")
_FETCH = Path(__file__).parents[3] / "launcher" / "aws_dl1" / "fetch.py"
_DOCSTRING = re.compile(r'^ *"""(?:[^"]|"(?!""))*"""\n', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The values of a machine's node.json, with its names in Python's spelling.

    `launcher` and `code` are names of objects in the bucket. `ssh_secret` is the name or ARN of the secret whose value
    is the private key. `host_nic` is `libfabric` or `sockets`. `stop_when_idle_minutes` 0: the machine never stops by
    itself. `accelerator`: what the program has to know of the machine's accelerators, unless it knows it by itself.
    """

    region: str
    bucket: str
    job: str
    launcher: str
    code: str | None = None
    log_group: str | None = None
    ssh_secret: str
    ssh_port: int = 3022
    image: str
    release: str
    host_nic: str = "libfabric"
    efa_interfaces: int
    stop_when_idle_minutes: int
    accelerator: Mapping[str, object] | None = None

    def document(self) -> dict[str, object]:
        """The content of node.json."""
        told = {camel_case(column.name): getattr(self, column.name) for column in fields(self)}
        return told if self.accelerator else {key: value for key, value in told.items() if key != "accelerator"}


# What of an accelerator's row its machines have to know (launcher/aws_dl1/accelerators.py).
_OF_NODES = ("words", "runtime", "docker", "environment", "meets", "shows", "listed", "late", "host_nic")


def node_accelerator(instance_type: str) -> Mapping[str, object] | None:
    """The part of node.json about a machine's accelerators. None: the program on the machine knows them without it, as
    on all machines of earlier releases, whose node.json must not change."""
    machine, accelerator = aws_machine(instance_type), accelerator_of_machine(instance_type)
    if machine is None or accelerator is None or accelerator.known_to_nodes:
        return None
    told = {**{key: getattr(accelerator, key) for key in _OF_NODES}, "count": machine.accelerators}
    return {key: value for key, value in told.items() if value}


def user_data(settings: NodeSettings) -> str:
    """The cloud-config of a machine."""
    # A name with `"` or a line break cannot end the YAML string: JSON's strings are strings of YAML, too.
    text = Template(_TEMPLATE.read_text("utf-8")).substitute(
        node_json=json.dumps(json.dumps(settings.document(), indent=1) + "\n"),
        # Not compressed, because other releases of Python would compress it to other bytes. Docstrings are left
        # out.
        fetch=indent(_DOCSTRING.sub("", _FETCH.read_text("utf-8")).rstrip(), "   "),
    )
    if len(text.encode()) > LARGEST:
        raise ValueError(f"the user data has {len(text.encode())} bytes, and EC2 takes {LARGEST}: use shorter names")
    return text
