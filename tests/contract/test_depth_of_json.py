# SPDX-License-Identifier: Apache-2.0
"""Deeply nested JSON causes a RecursionError, which is no ValueError. So every module of nodes and hosts that reads
JSON or YAML either handles that error, or is listed here with the trusted writer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("launcher", "localcloud/hosts", "localcloud/oci/job_runs", "localcloud/aws/hosts", "localcloud/openpai/hosts")
_READERS = {("json", "loads"), ("json", "load"), ("yaml", "load"), ("yaml", "safe_load")}
# Modules that read only trusted files, and who writes these.
WRITTEN_BY = {
    "launcher/aws_dl1/accelerators.py": "the drivers of the machine",
    "launcher/aws_dl1/container.py": "the machine, for its container",
    "launcher/aws_dl1/fetch.py": "AWS, and the deployer",
    "launcher/aws_dl1/machine/commands.py": "docker",
    "launcher/aws_dl1/machine/disks.py": "lsblk",
    "launcher/aws_dl1/machine/equipment.py": "docker",
    "launcher/aws_dl1/machine/facts.py": "the deployer, and AWS",
    "launcher/aws_dl1/services.py": "AWS",
    "launcher/speaks/slurm/programs.py": "the launcher, for the script's own programs",
    "launcher/images/lock.py": "pip, while an image is built",
    "launcher/oci/bucket.py": "OCI",
    "launcher/oci/identity.py": "OCI",
    "localcloud/hosts/child_process.py": "our own process beside",
    "localcloud/aws/hosts/machine/boot.py": "the cloud, for the instance",
    "localcloud/aws/hosts/machine/channels.py": "the instance itself: all in it is its own",
    "localcloud/aws/hosts/machine/stand_in.py": "the cloud, for the instance",
    "localcloud/hosts/evidence.py": "nft, and the cloud",
    "localcloud/hosts/node_setup.py": "the cloud",
    "localcloud/hosts/run_hosts.py": "the supervisor, where no node can write",
    "localcloud/hosts/supervisor.py": "the cloud",
    "localcloud/hosts/unpacking.py": "the hosts, for the node",
}


def _unguarded() -> Iterator[str]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
            if any(_reads(node) and not _expects(node, parents) for node in ast.walk(tree)):
                yield path.relative_to(ROOT).as_posix()


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
            return (module, name) in _READERS
        case _:
            return False


def _expects(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while (parent := parents.get(node)) is not None:
        if isinstance(parent, ast.Try) and node in parent.body:
            caught = [ast.unparse(each.type) for each in parent.handlers if each.type]
            if any("RecursionError" in each or each == "Exception" for each in caught):
                return True
        node = parent
    return False


def test_every_reader_of_untrusted_json_handles_any_nesting() -> None:
    assert sorted(_unguarded()) == sorted(WRITTEN_BY)
