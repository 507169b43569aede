# SPDX-License-Identifier: Apache-2.0
"""What a machine of AWS or its accelerator needs is in its row: code never compares their names, and only modules that
this test lists may say the words of a vendor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from catalog.tables import table
from tools.size import product_modules

VENDORS = re.compile(r"gaudi|habana|hccl|neuron|nvidia", re.IGNORECASE)
# Module -> why it says them.
MAY_SAY_VENDORS = {
    "launcher/aws_dl1/host_nic.py": "the one module that only Gaudi needs; its row asks for it (`host_nic`)",
    "launcher/speaks/openpai/variables.py": "a variable that OpenPAI's own runtime sets",
    "launcher/devices.py": "what drivers of each kind show, wherever a container has them",
    "components/aws/local/new_stack.py": "the kind of accelerators that scripts for GPUs need",
    "trainyard/bring/slurm.py": "the name of an image, as an example of a form",
    "catalog/environments.py": "packages for NVIDIA's cards, in a comment",
    "localcloud/environments/downloads.py": "packages for NVIDIA's cards, which this machine may lack",
    "localcloud/environments/layers.py": "packages for NVIDIA's cards, which this machine may lack",
    "localcloud/hosts/folders.py": "paths of drivers, which local nodes may see",
    "localcloud/oci/services/data_science/jobs.py": "names of OCI's own series of shapes",
    "localcloud/openpai/attempts.py": "a variable that OpenPAI's own runtime sets",
    "policies/rules/mutable_tags.py": "names of images, as examples of a rule",
}
MACHINES = table("aws_machines")["machines"].keys()
ACCELERATORS = table("aws_accelerators").keys()
# "dl1" compares as well as "dl1.24xlarge". A machine's model ("H100") is a name, too.
NAMES = {
    *MACHINES,
    *(name.partition(".")[0] for name in MACHINES),
    *(row["model"] for row in table("aws_machines")["machines"].values() if "model" in row),
}
A_NAME = re.compile("|".join(map(re.escape, sorted({*NAMES, *ACCELERATORS} - {"none"}))) + "|accelerator")
COMPARING_METHODS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split"}


def compared_values(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, text, and what it is compared with, of each text that code compares with a value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            beside = ast.unparse(node)
        elif isinstance(node, ast.MatchValue):
            sides, beside = [node.value], ""
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in COMPARING_METHODS:
            sides, beside = list(node.args), ast.unparse(node.func)
        else:
            continue
        for side in sides:
            for part in ast.walk(side):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value, beside


def is_name_of_machine(text: str, beside: str) -> bool:
    # `none` is a row of accelerators, and a word for much else.
    is_accelerator = text in ACCELERATORS and (text != "none" or "accelerator" in beside)
    return is_accelerator or text.rstrip(".") in NAMES


def test_code_compares_nothing_with_the_name_of_a_machine_or_an_accelerator() -> None:
    compared = [
        f"{module}:{line}: {text}"
        for module, source in product_modules("")
        if A_NAME.search(source.decode())
        for line, text, beside in compared_values(ast.parse(source))
        if is_name_of_machine(text, beside)
    ]
    assert not compared, "make what follows from it a column of its row"


@pytest.mark.parametrize(
    "code",
    [
        "if job.shape.name == 'dl1.24xlarge': pass",
        "if name in ('gaudi', 'nvidia'): pass",
        "if machine.accelerator != 'none': pass",
        "if name.startswith('p5.'): pass",
        "match accelerator:\n    case 'neuron': pass",
        "if machine.model == 'H100': pass",
    ],
)
def test_a_comparison_with_a_name_is_seen(code: str) -> None:
    assert any(is_name_of_machine(text, beside) for _line, text, beside in compared_values(ast.parse(code)))


def test_only_listed_modules_say_the_words_of_a_vendor() -> None:
    saying = {module for module, source in product_modules("") if VENDORS.search(source.decode())}
    assert saying == MAY_SAY_VENDORS.keys(), "make it a column of a row, or list the module with the reason"
