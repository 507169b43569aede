# SPDX-License-Identifier: Apache-2.0
"""Tasks on OpenPAI share the network of their machine. Two jobs with the same fixed port cannot run on one machine."""

import re
from typing import Any

from policies.openpai_jobs import RUN, commands_of, protocol_of_run, roles_of, sample_openpai_run
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

# A label has a count of ports. So large a value must be the number of a port.
FEWEST_THAT_IS_A_NUMBER = 1024
HIGHEST = 65535
_PORT_NAME = re.compile(r"(?:^|_)port$", re.IGNORECASE)
# `MASTER_PORT=29500`, `--master-port 29500`, `--rdzv-endpoint=host:29500`
_FIXED = re.compile(
    r"\b(?P<variable>\w*PORT)=[\"']?(?P<port>\d{2,5})\b"
    r"|--(?P<option>(?:[\w-]*[_-])?port)[= ][\"']?(?P<its>\d{2,5})\b"
    r"|--(?P<place>rdzv[_-]endpoint)[= ]\S*:(?P<at>\d{2,5})\b"
)


def judge_fixed_ports(resource: JudgedResource) -> PolicyVerdict:
    protocol = protocol_of_run(resource)
    parts = [
        *(lambda role=role: judge_labels(role) for role in roles_of(resource).values()),
        *(lambda text=text: judge_command(str(text)) for text in commands_of(protocol)),
        *(lambda name=name, value=value: judge_port_parameter(name, value)
          for name, value in (protocol.get("parameters") or {}).items()),
    ]  # fmt: skip
    return verdict_on_every(lambda part: part(), parts)


def judge_labels(role: Any) -> PolicyVerdict:
    labels = (role.get("resourcePerInstance") or {}).get("ports") or {}
    return verdict_on_every(judge_label_count, labels.items())


def judge_label_count(label: tuple[str, Any]) -> PolicyVerdict:
    name, count = label
    if int(count) >= FEWEST_THAT_IS_A_NUMBER:
        return fail_because(
            f"the label `{name}` asks for {int(count)} ports: the protocol takes a count, and not a number"
        )
    return PASS


def judge_command(text: str) -> PolicyVerdict:
    match = _FIXED.search(text)
    if match is None:
        return PASS
    setting, port = (value for value in match.groups() if value)
    return fail_because(f"a command sets `{setting}` to the port {port}")


def judge_port_parameter(name: str, value: Any) -> PolicyVerdict:
    number = str(value).removesuffix(".0")
    if _PORT_NAME.search(name) and number.isdigit() and 0 < int(number) <= HIGHEST:
        return fail_because(f"the parameter `{name}` is the port {number}")
    return PASS


def _run_with_labels(**ports: int) -> JudgedResource:
    return sample_openpai_run(role={"resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0, "ports": ports}})


RULE = PolicyRule(
    id="fixed-ports",
    level="mandatory",
    asks="A job on OpenPAI reserves its ports, and fixes none.",
    remedy="reserve one by a label (`ports: { SyncPort: 1 }`) and read it from `PAI_PORT_LIST_<role>_<index>_<label>`",
    types=(RUN,),
    judge=judge_fixed_ports,
    passes={
        "reserved by a label": sample_openpai_run(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "a port by its older name": sample_openpai_run(
            role={"commands": ["MASTER_PORT=$PAI_worker_0_SyncPort_PORT python train.py"]}
        ),
        "a range of ports": _run_with_labels(workers=100),
        "another parameter": sample_openpai_run(parameters={"epochs": 29500}),
    },
    fails={
        "in a command": sample_openpai_run(role={"commands": ["export MASTER_PORT=5000", "python train.py"]}),
        "as an option": sample_openpai_run(role={"commands": ["torchrun --master_port 29500 train.py"]}),
        "as a place to meet": sample_openpai_run(
            role={"commands": ["torchrun --rdzv-endpoint=$PAI_HOST_IP_worker_0:29400 train.py"]}
        ),
        "before the command": sample_openpai_run(
            deployments=[{"name": "prod", "taskRoles": {"worker": {"preCommands": ["PORT=8080 serve"]}}}]
        ),
        "as a parameter": sample_openpai_run(parameters={"master_port": 5000.0}),
        "a number in place of a count": _run_with_labels(SyncPort=29500),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "a command of another resource": sample_openpai_run(
            role={"commands": [Unknown("protocol.taskRoles.worker.commands[0]")]}
        ),
    },
)
