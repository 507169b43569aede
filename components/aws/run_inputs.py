# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run resource. `pulumi up` starts runs with them, and so does a rehearsal."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from components.aws.plan import AwsDl1Plan, AwsJobPlan
from components.plan.model import RunPlan
from schemas.job_code import CodeArtifact, folder_digest, folder_entries
from schemas.model import EnvValue, Secret

# The launcher, which ships alone, knows it by the same name (launcher/aws_dl1/host_nic.py).
HOST_NIC_VARIABLE = "TRAINYARD_HOST_NIC"
# Part of the digest: an archive in another format must get another name.
FORMAT = b"tar, gzip, not compressed"
# Times and owners differ between checkouts, so they are left out. The launcher does not need them.
_TIME = 315532800
# The size of an uncompressed block of deflate.
_BLOCK = 65535
_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF))


class RunFiller(Protocol):
    """Fills in the references that a plan leaves open: with values, or with Pulumi's outputs."""

    def fill(self, text: str) -> Any: ...

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]: ...

    def document(self, value: Mapping[str, Any]) -> Any: ...


def aws_run_inputs(
    plan: AwsDl1Plan, job: AwsJobPlan, run: RunPlan, where: Mapping[str, Any], filler: RunFiller
) -> dict[str, Any]:
    """`where`: values that only the deployment knows: bucket, logGroup, code, secret and secretVersion, each may be
    None.

    The secret's version is not part of `cluster`, so a new version does not end tries.
    """
    version = {"secretVersion": where["secretVersion"]} if where.get("secretVersion") is not None else {}
    where = {key: value for key, value in where.items() if key != "secretVersion"}
    cluster = {"job": job.cluster.key, "region": plan.region, "stack": plan.stack, **where}
    # The default is not written: a changed environment would start the runs of earlier releases again.
    forced = {HOST_NIC_VARIABLE: "host-memory"} if job.cluster.host_memory else {}
    nodes = []
    for node in run.nodes:
        # Secrets are not here: nodes read them by their role when the run begins.
        plain = {name: value for name, value in node.environment.items() if not isinstance(value, Secret)}
        environment = {**forced, **filler.environment(plain), "TRAINYARD_LAUNCH": filler.document(node.launch)}
        nodes.append({"name": node.name, "role": node.role, "rank": node.rank, "environment": environment})
    return {
        "platform": plan.platform,
        **version,
        "cluster": {key: value for key, value in cluster.items() if value is not None},
        "displayName": run.display_name,
        "tags": {**plan.tags, "job": job.name, "run": run.name},
        "nodes": nodes,
        "image": filler.fill(job.image),
        "maximumRuntimeMinutes": job.maximum_runtime_minutes,
        "expects": job.expects,
        "until": run.until,
        "attempt": run.attempt,
    }


def secret_variables(run: RunPlan) -> str | None:
    """The secret variables of a run as a JSON object. None if it has none.

    A node reads the variables that all nodes share, and those under its own name, such as `worker-0/HF_TOKEN`.
    """
    own = {
        node.name: {name: value.value or "" for name, value in node.environment.items() if isinstance(value, Secret)}
        for node in run.nodes
    }
    texts: dict[str, str] = {}
    for variable in sorted({name for values in own.values() for name in values}):
        has = {node: values[variable] for node, values in own.items() if variable in values}
        if len(has) == len(own) and len(set(has.values())) == 1:
            texts[variable] = next(iter(has.values()))
        else:
            texts |= {f"{node}/{variable}": text for node, text in has.items()}
    return json.dumps(texts, sort_keys=True) if texts else None


def run_secret_name(job: AwsJobPlan, run: RunPlan) -> str:
    """The name of the secret with a run's secret variables. A renamed run keeps it. The path differs from that of the
    cluster's SSH key."""
    return f"{job.cluster.name}/runs/{next(iter(run.was), run.name)}"


def build_archive(folder: Path, into: Path, name: str, inside: str = "") -> CodeArtifact:
    """Writes the archive below `into`. `inside`: the folder that its files lie in."""
    digest = folder_digest(folder, FORMAT + inside.encode())
    into.mkdir(parents=True, exist_ok=True)
    target = into / _archive_file_name(name, digest)
    if not target.exists():
        unfinished = target.with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_bytes(_gzip_uncompressed(_tar_folder(folder, inside)))
        unfinished.replace(target)
    return CodeArtifact(target, digest, target.stat().st_size)


def archive_name(folder: Path, name: str) -> str:
    """The name of this folder's archive, without making it."""
    return _archive_file_name(name, folder_digest(folder, FORMAT))


def _archive_file_name(name: str, digest: str) -> str:
    return "-".join(part for part in (name, f"{digest[:16]}.tar.gz") if part)


def _tar_folder(folder: Path, inside: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in folder_entries(folder):
            data = path.read_bytes()
            entry = tarfile.TarInfo(f"{inside}/{name}" if inside else name)
            entry.size, entry.mtime = len(data), _TIME
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def _gzip_uncompressed(data: bytes) -> bytes:
    """Writes gzip without compression. It does not use zlib, whose versions give different bytes even at level 0."""
    blocks = [data[start : start + _BLOCK] for start in range(0, len(data), _BLOCK)] or [b""]
    body = b"".join(
        struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks, 1)
    )
    return _HEADER + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
