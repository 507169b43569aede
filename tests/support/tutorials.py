# SPDX-License-Identifier: Apache-2.0
"""The tutorials of tests/tutorials: what `check` says of each, what their results are, and how to type them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "tutorials"


class Tutorial(NamedTuple):
    """`says`: the codes of what `check` finds. `result`: a file in the working directory of the run; empty if it cannot
    train on the local cloud, as `check` says. `obeyed`: the text that obeys `check`, in place of `runs:`."""

    says: tuple[str, ...] = ()
    result: str = ""
    obeyed: str = ""


TUTORIALS = {
    "ddp": Tutorial(result="snapshot.pt"),
    "keras": Tutorial(("TY8001",)),
    "dask": Tutorial(("TY4000",), "model.json", "options: { boosting: true }\n      runs:"),
    "ray": Tutorial(("TY4001",)),
    "lightning": Tutorial(result="lightning_logs/version_0/checkpoints/epoch=1-step=32.ckpt"),
    "accelerate": Tutorial(result="checkpoint/model.safetensors"),
}
# Their environments have what their requirements ask for, so `up` needs no index.
NEEDS_NO_INDEX = ("accelerate", "lightning")


def as_typed(name: str, folder: str) -> str:
    """The commands for a tutorial whose folder lies in `folder`: its stack file obeys `check`, and its script is as it
    was."""
    tutorial, place = TUTORIALS[name], f"{folder}/{name}"
    of_stack = f"{name} --local --stacks {place}"
    obey = f"sed -i 's/runs:/{tutorial.obeyed}/' {place}/Pulumi.{name}.yaml\n".replace(
        "\n      runs:", "\\n      runs:"
    )
    return (
        f"{obey if tutorial.obeyed else ''}trainyard up {of_stack}\n"
        f"trainyard runs watch {of_stack}\n"
        f"trainyard runs outputs {of_stack} --to {place}/results\n"
        f"test -s {place}/results/{name}/first/workdir/{tutorial.result}\n"
    )
