# SPDX-License-Identifier: Apache-2.0
"""Edits that change no value of a stack, of which a review must make nothing: each is made to a stack of its own, and
all of them are in one repository."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.examples import STACKS
from tests.support.review_examples import AWS, OCI, PAI, git
from tests.support.silence import SILENT, first_screens

IN_A_VCN = "oci-existing-vcn"
TextEdit = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class EditedStack:
    """`edits`: by what they do, in the order in which the text of the stack file is edited. `before`: what it was made
    of an example."""

    name: str
    stack: str = OCI
    before: TextEdit = str
    edits: Mapping[str, TextEdit]


def what_edits_say(folder: Path) -> Iterator[str]:
    """What the reviews of these edits say, where it is more than that nothing changed."""
    stacks = folder / "stacks"
    shutil.copytree(STACKS / "examples", stacks / "examples")
    files = {stack.name: stacks / f"Pulumi.{stack.name}.yaml" for stack in EDITED_STACKS}
    texts = {
        stack.name: stack.before((STACKS / f"Pulumi.{stack.stack}.yaml").read_text("utf-8")) for stack in EDITED_STACKS
    }
    for name, text in texts.items():
        files[name].write_text(text, "utf-8")
    for name, (text, _) in FILE_EDITS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    for stack in EDITED_STACKS:
        for title, edit in stack.edits.items():
            edited = edit(texts[stack.name])
            assert edited != texts[stack.name], f"{stack.name}: {title}: edits nothing"
            texts[stack.name] = edited
        files[stack.name].write_bytes(texts[stack.name].encode("utf-8"))
    for name, (_, edited) in FILE_EDITS.items():
        (folder / name).write_text(edited, "utf-8")
    (folder / "notes.txt").write_text("a file that git does not know\n", "utf-8")
    files["layout"].chmod(0o755)
    screens, tripped = first_screens(folder)
    for stack in EDITED_STACKS:
        screen = screens[stack.name]
        if SILENT not in screen.splitlines()[0] or tripped[stack.name]:
            yield f"one of these: {'; '.join(stack.edits)}\ntrips {sorted(tripped[stack.name])}\n{screen}"


def _swap(old: str, new: str) -> TextEdit:
    """The text with another spelling at a place."""

    def swap(text: str) -> str:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        return text.replace(old, new)

    return swap


def _below(line: str, *lines: str) -> TextEdit:
    """The text with more lines below one, as deep as it."""
    indent = re.match(" *", line)[0]  # type: ignore[index]
    return _swap(f"{line}\n", "\n".join((line, *(indent + added for added in lines), "")))


def _dump(**options: Any) -> TextEdit:
    """The values as YAML writes them with these options: without comments, quotes and empty lines of the file."""
    return lambda text: yaml.safe_dump(yaml.safe_load(text), **{"sort_keys": False, **options})


def _in_config(change: Callable[[dict[str, Any]], object]) -> TextEdit:
    """The values after a change of the config."""

    def edit(text: str) -> str:
        document = yaml.safe_load(text)
        change(document["config"])
        return yaml.safe_dump(document, sort_keys=False)

    return edit


def _reverse(*keys: str) -> TextEdit:
    """A mapping, or a list, in the opposite order."""

    def reverse(config: dict[str, Any]) -> None:
        *above, last = keys
        holder: Any = config
        for key in above:
            holder = holder[key]
        held = holder[last]
        holder[last] = dict(reversed(held.items())) if isinstance(held, dict) else held[::-1]

    return _in_config(reverse)


def _second_job(config: dict[str, Any]) -> None:
    jobs = config["trainyard:jobs"]
    (name,) = jobs
    jobs["second"] = dict(jobs[name])
    if quota := config.get("trainyard:quota"):
        quota["vcpus"] *= 2


_NAMES = "  trainyard:environment: prod\n"
_SEED = "{ env: { SEED: '7' }"
_RUNS_OF_ANCHORS = f"""\
        base: &base {_SEED} }}
        again: *base
        merged: {_SEED}, attempt: 3 }}
        copied: {{ env: {{ SEED: '8' }} }}
        alike: {{ env: {{ SEED: '8' }} }}
"""
_INGRESS = """
    cidr: 10.40.0.0/16
    zone: us-east-1a
    ingress:
      - { cidr: 203.0.113.0/24, ports: 443, why: the office }
      - { cidr: 198.51.100.0/24, ports: 6006-6010, why: the other office }
"""

EDITED_STACKS = (
    EditedStack(
        name="layout",
        edits={
            "a comment above a job": _swap("    resnet:\n", "    # Ours\n    resnet:\n"),
            "a comment at the end of a line": _swap("--epochs 10\n", "--epochs 10  # as on the cluster\n"),
            "another comment": _swap("# PyTorch DistributedDataParallel: four", "# PyTorch's DDP: four"),
            "empty lines": lambda text: text.replace("\n  trainyard:", "\n\n  trainyard:"),
            "spaces at the ends of lines": lambda text: text.replace("\n", "  \n"),
            "no line break at the end": str.rstrip,
            "line breaks of Windows": lambda text: text.replace("\n", "\r\n"),
            "a byte order mark": lambda text: f"\ufeff{text}",
        },
    ),
    EditedStack(
        name="documents",
        edits={
            "no comments": lambda text: re.sub(r"(?m)^ *#.*\n", "", text),
            "a command of two lines": _swap("train.py --epochs 10\n", "train.py\n        --epochs 10\n"),
            "the start of a document": lambda text: f"---\n{text}",
            "the end of a document": lambda text: f"{text}...\n",
        },
    ),
    EditedStack(
        name="spelling",
        edits={
            "quotes around a key": _swap("  trainyard:team: vision", '  "trainyard:team": vision'),
            "a key with a question mark": _swap(_NAMES, "  ? trainyard:environment\n  : prod\n"),
            "a folded scalar": _swap("train.py --epochs 10", ">-\n        train.py\n        --epochs 10"),
            "a literal scalar": _swap("image: ${registry}:1.4", "image: |-\n        ${registry}:1.4"),
            "escapes": _swap("name: vision-prod-ddp", 'name: "\\x76ision\\u002dprod-ddp"'),
            "single quotes": _swap('"tuned for ${team}"', "'tuned for ${team}'"),
            "a tag of YAML": _swap("framework: pytorch", "framework: !!str pytorch"),
            "JSON in a text": _swap("{ cidr: 10.36.0.0/16 }", """'{"cidr": "10.36.0.0/16"}'"""),
            "a list in block style": _swap('[--lr, "0.05"]', '\n          - --lr\n          - "0.05"'),
            "a hexadecimal number": _swap("worker: { replicas: 3,", "worker: { replicas: 0x3,"),
            "a binary number": _swap("main: { replicas: 1,", "main: { replicas: 0b1,"),
            "a number with a sign": _swap("attempt: 2", "attempt: +2"),
            "a port as a text": _swap("rendezvous: 29400,", 'rendezvous: "29400",'),
            "a range with a colon": _swap("data: 29500-29563", 'data: "29500:29563"'),
            "a shape in full": _swap("shape: VM.GPU.A10.1", "shape: { name: VM.GPU.A10.1 }"),
            "a folder by another path": _swap("code: ./examples/pytorch-ddp", "code: examples//pytorch-ddp/"),
        },
    ),
    EditedStack(
        name="styles",
        edits={
            "a port as a range": _swap("rendezvous: 29400,", "rendezvous: 29400-29400,"),
            "a folder in full": _swap("code: ./examples/pytorch-ddp", "code: { folder: ./examples/pytorch-ddp }"),
            "sorted keys in block style": _dump(sort_keys=True, default_flow_style=False),
        },
    ),
    EditedStack(name="lines", stack=IN_A_VCN, edits={"short lines": _dump(default_flow_style=False, width=20)}),
    EditedStack(
        name="anchors",
        before=lambda text: text.replace("        base: {}\n", _RUNS_OF_ANCHORS),
        edits={
            "another name of an anchor": lambda text: text.replace("&base", "&first").replace("*base", "*first"),
            "a merge key": _swap(f"merged: {_SEED}, attempt: 3 }}", "merged: { <<: *first, attempt: 3 }"),
            "a copy in place of an alias": _swap("again: *first", f"again: {_SEED} }}"),
            "an alias in place of a copy": lambda text: text.replace("copied: {", "copied: &copied {").replace(
                "alike: { env: { SEED: '8' } }", "alike: *copied"
            ),
        },
    ),
    EditedStack(
        name="defaults",
        before=lambda text: _below(
            "      framework: pytorch", "was: old", "requirements: ./packages/requirements.txt"
        )(text.replace("prefix: images/ }", "prefix: images/ }\n        - { mount: /data/all }")),
        edits={
            "the default platform": _below("  oci:region: us-ashburn-1", "trainyard:platform: oci"),
            "defaults of access": _swap("mode: least-privilege, ", "existing: false, scope: compartment, "),
            "defaults of a network": _swap("10.36.0.0/16 }", "10.36.0.0/16, mode: least, nat: false, frameworks: [] }"),
            "defaults of a bucket": _swap("vision-prod-ddp }", "vision-prod-ddp, versioning: true, keep: true }"),
            "defaults of a registry": _swap("vision/ddp }", "vision/ddp, immutable: false, keep: true }"),
            "defaults of logs": _swap(_NAMES, f"{_NAMES}  trainyard:logs: {{ enabled: true, retentionDays: 30 }}\n"),
            "a job's layout and files": _below("      framework: pytorch", "layout: run-per-node", "keep: []"),
            "a job's variables": _below("      framework: pytorch", "env: {}"),
            "a job's disk": _below("      framework: pytorch", "blockStorageGb: 100"),
            "a job's times": _below("      framework: pytorch", "maximumRuntimeMinutes: 1440", "stallMinutes: 30"),
            "an input's prefix": _swap("mount: /data/all", 'mount: /data/all, prefix: ""'),
            "defaults of a run": _swap("base: {}", "base: { args: [], env: {}, attempt: 1, until: started }"),
            "a former name in a list": _swap("was: old", "was: [old]"),
            "requirements by another path": _swap("./packages/requirements", "packages/requirements"),
        },
    ),
    EditedStack(
        name="orders",
        before=lambda text: text.replace(
            _NAMES, f"{_NAMES}  trainyard:tags: {{ owner: vision, purpose: research }}\n"
        ).replace("env: { RUN_NOTE:", "env: { SEED: '7', RUN_NOTE:"),
        edits={
            "ports": _reverse("trainyard:jobs", "resnet", "ports"),
            "roles": _reverse("trainyard:jobs", "resnet", "roles"),
            "runs": _reverse("trainyard:jobs", "resnet", "runs"),
            "tags": _reverse("trainyard:tags"),
            "variables": _reverse("trainyard:jobs", "resnet", "runs", "tuned", "env"),
            "keys of a job": _reverse("trainyard:jobs", "resnet"),
        },
    ),
    EditedStack(
        name="aws",
        stack=AWS,
        edits={
            "a truth in capitals": _swap("immutable: true", "immutable: TRUE"),
            "a number with an underscore": _swap("vcpus: 192", "vcpus: 1_92"),
            "defaults of a quota": _swap("{vcpus:", "{addresses: 5, vcpus:"),
            "defaults of logs": _swap("  trainyard:logs: {retentionDays: 30}\n", ""),
            "a role in full": _swap("main: 1,", "main: {replicas: 1, env: {}, retry: {count: 0}},"),
            "defaults left out": _swap("        release: 1.15.1\n        efa: 4\n", ""),
            "defaults of a cluster": _swap("stopWhenIdle: 30", "publicAddress: none\n        spot: false"),
            "other defaults of a cluster": _below("        spot: false", "sshPort: 3022", "hostNic: auto"),
            "options": _reverse("trainyard:jobs", "resnet", "options"),
            "sorted keys": _dump(sort_keys=True),
            "flow style": _dump(default_flow_style=True),
        },
    ),
    EditedStack(
        name="aws-orders",
        stack=AWS,
        before=lambda text: _in_config(_second_job)(
            text.replace(" {cidr: 10.40.0.0/16, zone: us-east-1a}\n", _INGRESS)
        ),
        edits={"jobs": _reverse("trainyard:jobs"), "ingress": _reverse("trainyard:network", "ingress")},
    ),
    EditedStack(
        name="openpai",
        stack=PAI,
        edits={
            "a whole number with a fraction": _swap("memoryGb: 16,", "memoryGb: 16.0,"),
            "defaults of a SKU": _swap("shmMb: 8192 }", "shmMb: 8192, infiniband: false }"),
            "defaults of a plugin": _swap("plugin: ssh,", "plugin: ssh, failurePolicy: fail, taskroles: [],"),
            "the default virtual cluster": _swap("user: vision-bot }", "user: vision-bot, virtualCluster: default }"),
            "defaults of a job": _below("      framework: pytorch", "prerequisites: []", "parameters: {}"),
            "sorted keys": _dump(sort_keys=True),
            "a deep indentation": _dump(indent=6),
            "JSON": lambda text: json.dumps(yaml.safe_load(text), indent=1),
        },
    ),
    EditedStack(
        name="openpai-orders",
        stack=PAI,
        before=_in_config(_second_job),
        edits={"jobs": _reverse("trainyard:jobs"), "keys of a SKU": _reverse("trainyard:skus", "gpu2")},
    ),
)  # fmt: skip
# By the path in the repository: the text before and after.
FILE_EDITS = {
    "README.md": ("# Ours\n", "# Ours, and how to use it\n"),
    "CHANGELOG.md": ("1.0\n", "1.1\n1.0\n"),
    "docs/runs.txt": ("how we train\n", "how we train now\n"),
    ".gitignore": ("*.pyc\n", "*.pyc\n*.log\n"),
    "stacks/examples/unused.py": ("print(1)\n", "print(2)\n"),
    "stacks/Pulumi.yaml": ("name: trainyard\nruntime: python\n", "# Ours\nruntime: 'python'\nname: trainyard\n"),
    "stacks/packages/requirements.txt": ("rich==13.0\n", "rich==13.0\n"),
    "requirements.txt": ("numpy==1.26\nrich==13.0\n", "# For the laptop\nrich==13.0  # colours\n\nnumpy==1.26\n"),
}
