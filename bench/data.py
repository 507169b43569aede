# SPDX-License-Identifier: Apache-2.0
"""`trainyard data put` and `get` of one large file, as whole processes, against plain calls of Oracle's SDK.

The peers are what a user would write: UploadManager.upload_file with its defaults, and get_object's stream written to a
file, once with and once without a check of its MD5. Server and client share this machine's processors. So a ratio
compares wall time, of pairs that are measured alternately: the server's work is part of it, and the same for both.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness.rows import Aim, Row, Spent, in_turns, spent
from localcloud import control

GIGABYTE = 1_000_000_000
# The variable makes a quick run possible, with a smaller file.
SIZE = int(os.environ.get("TRAINYARD_BENCH_DATA_BYTES", GIGABYTE))
AIM = Aim("ratio", 1.1)
BUCKET = "bench"
STACK = """\
config:
  oci:region: us-ashburn-1
  trainyard:team: bench
  trainyard:environment: data
  trainyard:compartment: {0.compartment}
  trainyard:tenancy: {0.tenancy}
  trainyard:bucket: {{ name: bench }}
  trainyard:jobs: {{}}
"""
_CLIENT = """\
import oci, sys
file, endpoint, namespace, name, path = sys.argv[1:]
config = oci.config.from_file(file)
client = oci.object_storage.ObjectStorageClient(config, service_endpoint=endpoint)
"""
PUT = (
    _CLIENT
    + """\
oci.object_storage.UploadManager(client).upload_file(namespace, "bench", name, path)
"""
)
_GET = (
    _CLIENT
    + """\
import hashlib
digest = hashlib.md5()
with open(path, "wb") as file:
    for block in client.get_object(namespace, "bench", name).data.raw.stream(1024 * 1024, decode_content=False):
        file.write(block)
        {}
"""
)
# The stream alone, and with a comparison of the checksum.
GET = _GET.format("pass")
GET_CHECKED = _GET.format("digest.update(block)")


@dataclass
class DataSetup:
    """A local cloud with a bucket, a file, and stack files that name both."""

    cloud: control.Cloud
    storage: Any
    folder: Path
    file: Path

    def __post_init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count()

    def ours(self, command: str, *words: str) -> Spent:
        start = [sys.executable, "-m", "trainyard", "data", command, "bench", *words]
        return spent([*start, "--stacks", str(self.folder), "--home", str(self.cloud.home)])

    def sdk(self, program: str, name: str, path: Path) -> Spent:
        cloud = self.cloud
        words = [str(cloud.config_file), cloud.endpoint, cloud.namespace, name, str(path)]
        return spent([sys.executable, "-c", program, *words])

    def put(self) -> Spent:
        prefix = f"ours-{next(self._numbers)}"
        taken = self.ours("put", str(self.file), prefix)
        self._remove(f"{prefix}/{self.file.name}")
        return taken

    def put_plainly(self) -> Spent:
        name = f"plain-{next(self._numbers)}"
        taken = self.sdk(PUT, name, self.file)
        self._remove(name)
        return taken

    def get(self, name: str) -> Spent:
        target = self.folder / "ours"
        taken = self.ours("get", name, "--to", str(target))
        (target / Path(name).name).unlink()
        return taken

    def get_plainly(self, name: str, program: str) -> Spent:
        target = self.folder / "plain"
        taken = self.sdk(program, name, target)
        target.unlink()
        return taken

    def _remove(self, name: str) -> None:
        self.storage.delete_object(self.cloud.namespace, BUCKET, name)


def rows() -> list[Row]:
    with ExitStack() as stack:
        setup = _make_setup(stack)
        what = f"{SIZE / GIGABYTE:.3g} GB"
        put, put_plainly = in_turns(setup.put, setup.put_plainly)
        made = [_row(f"put {what}", "UploadManager.upload_file", put, put_plainly)]
        setup.ours("put", str(setup.file), "parts")
        name = f"parts/{setup.file.name}"
        get, checked, unchecked = in_turns(
            lambda: setup.get(name), lambda: setup.get_plainly(name, GET_CHECKED), lambda: setup.get_plainly(name, GET)
        )
        made.append(_row(f"get {what}", "the stream of get_object, with its MD5", get, checked))
        made.append(_row(f"get {what}", "the same stream, nothing compared", get, unchecked))
        return made


def _make_setup(stack: ExitStack) -> DataSetup:
    import oci

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainyard-bench-")))
    cloud = control.start_cloud(folder / "cloud")
    stack.callback(control.stop_cloud, folder / "cloud")
    storage = oci.object_storage.ObjectStorageClient(
        oci.config.from_file(str(cloud.config_file)), service_endpoint=cloud.endpoint
    )
    details = oci.object_storage.models.CreateBucketDetails(name=BUCKET, compartment_id=cloud.compartment)
    storage.create_bucket(cloud.namespace, details)
    (folder / "Pulumi.bench.yaml").write_text(STACK.format(cloud))
    file = folder / "file"
    with file.open("wb") as content:
        for start in range(0, SIZE, 1 << 20):
            content.write(os.urandom(min(1 << 20, SIZE - start)))
    return DataSetup(cloud, storage, folder, file)


def _row(name: str, against: str, ours: Sequence[Spent], plain: Sequence[Spent]) -> Row:
    ratio = statistics.median(one.clock / other.clock for one, other in zip(ours, plain, strict=True))
    best, other = min(one.clock for one in ours), min(one.clock for one in plain)
    return Row(name, best, "s", against, other, ratio, AIM)
