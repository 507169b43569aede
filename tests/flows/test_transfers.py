# SPDX-License-Identifier: Apache-2.0
"""`trainyard data` against a real local cloud, with the official SDK as the other side."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oci
import pytest

from components.platform.streams import MEBIBYTE, PART_BYTES, WORKPLACE
from localcloud import admin
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.mounts import mount_namespace
from tests.support.waiting import LONGEST_SECONDS, eventually

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "trainyardlocal"
models = oci.object_storage.models
_NUMBERS = itertools.count()
# Large enough for several parts, and small enough for a fast test.
LARGE = 3 * PART_BYTES + 12345
STACK_FILE = """\
config:
  oci:region: us-ashburn-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:compartment: {compartment}
  trainyard:tenancy: {tenancy}
  trainyard:access: {{ users: {{ group: scientists }} }}
  trainyard:bucket: {{ name: {bucket} }}
  trainyard:jobs:
    resnet:
      was: oldnet
      framework: pytorch
      image: ${{registry}}:1.0
      shape: VM.GPU.A10.1
      roles: {{ main: 1, worker: 1 }}
      command: train.py
      runs: {{ base: {{}} }}
"""


@dataclass(frozen=True)
class Place:
    """A stack with a bucket of its own, and a folder on this machine."""

    cloud: Cloud
    storage: Any
    bucket: str
    stacks: Path
    folder: Path

    def words(self, command: str, *more: str | Path) -> list[str]:
        start = [sys.executable, "-m", "trainyard", "data", command, "demo", *map(str, more)]
        return [*start, "--stacks", str(self.stacks), "--home", str(self.cloud.home)]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(self.folder / "cache")}

    def attempt(self, command: str, *more: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(command, *more), cwd=self.folder, env=self.env, capture_output=True, text=True,
            timeout=LONGEST_SECONDS,
        )  # fmt: skip

    def run(self, command: str, *more: str | Path) -> str:
        done = self.attempt(command, *more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def refused(self, command: str, *more: str | Path) -> str:
        done = self.attempt(command, *more)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def process(self, command: str, *more: str | Path) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            self.words(command, *more), cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()

    def object(self, name: str, content: bytes = b"x", **more: Any) -> None:
        self.storage.put_object(NAMESPACE, self.bucket, name, content, **more)

    def read(self, name: str) -> bytes:
        return bytes(self.storage.get_object(NAMESPACE, self.bucket, name).data.content)

    def names(self) -> list[str]:
        return [item.name for item in self.storage.list_objects(NAMESPACE, self.bucket).data.objects]

    def uploads(self) -> list[Any]:
        return list(self.storage.list_multipart_uploads(NAMESPACE, self.bucket).data)

    def part_numbers(self) -> list[int]:
        """The parts that have arrived of the one upload that is not complete."""
        return [
            part.part_number
            for upload in self.uploads()
            for part in self.storage.list_multipart_upload_parts(
                NAMESPACE, self.bucket, upload.object, upload.upload_id
            ).data
        ]


@pytest.fixture
def place(shared_cloud: Cloud, tmp_path: Path) -> Place:
    bucket = f"bucket-{next(_NUMBERS)}"
    storage = Clients(shared_cloud).storage
    details = models.CreateBucketDetails(name=bucket, compartment_id=shared_cloud.compartment)
    storage.create_bucket(NAMESPACE, details)
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    text = STACK_FILE.format(compartment=shared_cloud.compartment, tenancy=shared_cloud.tenancy, bucket=bucket)
    (stacks / "Pulumi.demo.yaml").write_text(text)
    return Place(shared_cloud, storage, bucket, stacks, tmp_path)


@pytest.fixture(scope="module")
def large() -> bytes:
    return random.Random(14).randbytes(LARGE)


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_folder_is_uploaded_and_downloaded_again(place: Place, large: bytes) -> None:
    source = place.folder / "images"
    (source / "deep" / "er").mkdir(parents=True)
    contents = {"a.txt": b"a", ".hidden": b"h", "empty": b"", "deep/er/b c é.bin": b"\0\xff", "large": large}
    for name, content in contents.items():
        (source / name).write_bytes(content)
    (source / "link").symlink_to("/etc/passwd")
    (source / "folder-link").symlink_to("/etc")
    os.mkfifo(source / "pipe")
    told = place.refused("put", "images")
    assert "not put: link: is a link" in told
    assert "not put: folder-link: is a link" in told
    assert "not put: pipe: is neither a file nor a folder" in told
    assert "put: 5 files" in told
    assert "inputs: [{ mount: /data/images, prefix: data/images/ }]" in told
    assert place.names() == sorted(f"data/images/{name}" for name in contents)
    assert place.read("data/images/large") == large
    for name in ("link", "folder-link", "pipe"):
        (source / name).unlink()

    assert "put: 0 files, 0 bytes" in place.run("put", "images")
    told = place.run("get", "data/images", "--to", "copy")
    assert "fetched: 5 files" in told
    assert files_below(place.folder / "copy") == contents
    assert "fetched: 0 files, 0 bytes, into copy; 5 already there" in place.run("get", "data/images", "--to", "copy")
    place.run("get", "data/images/deep/")
    assert files_below(place.folder / "deep") == {"er/b c é.bin": b"\0\xff"}
    place.run("get", "data/images/large")
    assert (place.folder / "large").read_bytes() == large
    assert not list(place.folder.glob(f"**/{WORKPLACE}"))

    listed = json.loads(place.run("list", "data/images/", "--format", "json"))
    assert [row["size"] for row in listed["objects"]] == [len(contents[name]) for name in sorted(contents)]
    assert "5 objects, " in place.run("list")


def test_objects_of_other_clients_are_verified(place: Place, large: bytes) -> None:
    """Uploaded whole, in the SDK's default parts, and in parts of unusual sizes."""
    place.object("in/whole", large)
    manager = oci.object_storage.UploadManager(place.storage)
    (place.folder / "there").write_bytes(large)
    manager.upload_file(NAMESPACE, place.bucket, "in/parts", str(place.folder / "there"), part_size=10 * MEBIBYTE)
    manager.upload_file(NAMESPACE, place.bucket, "in/odd", str(place.folder / "there"), part_size=7 * MEBIBYTE + 1)
    told = place.run("get", "in/")
    assert {name: content == large for name, content in files_below(place.folder / "in").items()} == {
        "odd": True, "parts": True, "whole": True,
    }  # fmt: skip
    assert "in/odd: fetched, but not verified" in told
    assert told.count("not verified") == 1
    # The same content is recognised, whichever client uploaded it.
    (place.folder / "parts").write_bytes(large)
    assert "1 already there" in place.run("put", "parts", "in")


def test_other_content_is_not_overwritten_by_default(place: Place) -> None:
    (place.folder / "a.txt").write_text("mine")
    place.object("data/a.txt", b"theirs")
    told = place.refused("put", "a.txt")
    assert "not put: a.txt: the bucket has other content under this name; --overwrite" in told
    assert place.read("data/a.txt") == b"theirs"
    told = place.refused("get", "data/a.txt")
    assert "not fetched: data/a.txt: a file of this name with other content is there; --overwrite" in told
    assert (place.folder / "a.txt").read_text() == "mine"
    place.run("put", "a.txt", "--overwrite")
    assert place.read("data/a.txt") == b"mine"
    place.object("data/a.txt", b"theirs")
    place.run("get", "data/a.txt", "--overwrite")
    assert (place.folder / "a.txt").read_text() == "theirs"


def test_put_does_not_write_into_folders_of_runs(place: Place) -> None:
    (place.folder / "model.pt").write_text("x")
    for prefix in ("resnet/base/checkpoints", "/oldnet/base/"):
        assert "the runs of the job" in place.refused("put", "model.pt", prefix)
    assert place.names() == []
    place.run("put", "model.pt", "resnet/base/checkpoints", "--overwrite")
    assert place.names() == ["resnet/base/checkpoints/model.pt"]


@contextmanager
def slow(place: Place, operation: str, seconds: float = 60) -> Iterator[None]:
    """Two such calls, the first, take long. The others are as fast as ever."""
    fault = admin.add_fault(place.cloud, "latency", operations=operation, seconds=seconds, times=2)
    try:
        yield
    finally:
        admin.clear_faults(place.cloud, fault["id"])


def test_a_killed_put_resumes(place: Place, large: bytes) -> None:
    (place.folder / "large").write_bytes(large)
    with slow(place, "UploadPart"), place.process("put", "large") as process:
        eventually(place.part_numbers, lambda numbers: len(numbers) >= 2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    arrived = place.part_numbers()
    assert len(arrived) == 2
    assert place.names() == []
    told = place.run("put", "large")
    sent = len(large) - sum(min(PART_BYTES, len(large) - (number - 1) * PART_BYTES) for number in arrived)
    assert f"put: 1 file, {sent / 1e6:.3g} MB" in told
    assert place.read("data/large") == large
    assert place.uploads() == []
    assert list((place.folder / "cache" / "trainyard" / "uploads").iterdir()) == []


def test_ctrl_c_ends_a_transfer_and_says_how_to_resume(place: Place, large: bytes) -> None:
    (place.folder / "large").write_bytes(large)
    with slow(place, "UploadPart"), place.process("put", "large") as process:
        eventually(place.part_numbers, lambda numbers: len(numbers) >= 2)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=30)[0]
    assert process.returncode == 130
    assert "Run the same command again to continue." in told
    assert "Traceback" not in told
    place.run("put", "large")
    assert place.read("data/large") == large


def test_a_resumed_put_reuses_only_unchanged_parts(place: Place, large: bytes) -> None:
    """The file changed after the kill: the new object has nothing of the old content."""
    (place.folder / "large").write_bytes(large)
    with slow(place, "UploadPart"), place.process("put", "large") as process:
        eventually(place.part_numbers, lambda numbers: len(numbers) >= 2)
        process.kill()
    changed = bytes(reversed(large[:PART_BYTES])) + large[PART_BYTES:]
    (place.folder / "large").write_bytes(changed)
    place.run("put", "large")
    assert place.read("data/large") == changed


def test_a_killed_get_resumes(place: Place, large: bytes) -> None:
    place.object("data/large", large)
    work = place.folder / "copy" / WORKPLACE

    def journal() -> list[int]:
        return [json.loads(line)[0] for file in work.glob("*.parts") for line in file.read_text().splitlines()]

    with slow(place, "GetObject"), place.process("get", "data/large", "--to", "copy") as process:
        eventually(journal, lambda numbers: len(numbers) >= 2)
        process.kill()
        process.wait()
    assert not (place.folder / "copy" / "large").exists()
    first, second = journal()
    # The disk lost the content of one part that the journal lists.
    (draft,) = (file for file in work.iterdir() if file.suffix != ".parts")
    with draft.open("r+b") as file:
        file.seek((first - 1) * PART_BYTES)
        file.write(b"lost")
    told = place.run("get", "data/large", "--to", "copy")
    kept = min(PART_BYTES, len(large) - (second - 1) * PART_BYTES)
    assert f"fetched: 1 file, {(len(large) - kept) / 1e6:.3g} MB" in told
    assert files_below(place.folder / "copy") == {"large": large}
    assert not work.exists()


def test_a_transfer_survives_network_errors(place: Place, large: bytes) -> None:
    """Busy responses, lost connections, and calls that succeed without a response."""
    contents = {"large": large, **{f"small-{number}": bytes([number]) * number for number in range(5)}}
    (place.folder / "images").mkdir()
    for name, content in contents.items():
        (place.folder / "images" / name).write_bytes(content)
    for operation in ("PutObject", "UploadPart", "CommitMultipartUpload", "GetObject", "ListObjects"):
        admin.add_fault(place.cloud, "status", operations=operation, status=503, times=1)
        admin.add_fault(place.cloud, "drop", operations=operation, times=1)
        admin.add_fault(place.cloud, "lost-answer", operations=operation, times=1)
    try:
        place.run("put", "images")
        place.run("get", "data/images", "--to", "copy")
    finally:
        admin.clear_faults(place.cloud)
    assert files_below(place.folder / "copy") == contents
    assert place.uploads() == []


def test_the_bucket_of_a_used_stack_is_found(place: Place) -> None:
    place.object("data/x", b"x")
    owner = place.stacks / "Pulumi.demo.yaml"
    text = owner.read_text().replace("environment: dev", "environment: user")
    uses = "  trainyard:uses: {{ stack: acme/trainyard/{}, take: [bucket] }}\n"
    user = place.stacks / "Pulumi.user.yaml"
    user.write_text("".join(line for line in text.splitlines(True) if "bucket:" not in line) + uses.format("demo"))
    words = [word if word != "demo" else "user" for word in place.words("list")]
    listed = subprocess.run(words, cwd=place.folder, env=place.env, capture_output=True, text=True)
    assert f"oci://{place.bucket}@{NAMESPACE}" in listed.stdout, listed.stderr
    owner.rename(place.folder / "Pulumi.demo.yaml")
    lost = subprocess.run(words, cwd=place.folder, env=place.env, capture_output=True, text=True)
    assert '--bucket "$(pulumi stack output bucket -s acme/trainyard/demo)"' in lost.stderr
    named = subprocess.run([*words, "--bucket", place.bucket], cwd=place.folder, env=place.env, capture_output=True)
    assert named.returncode == 0


def test_a_transfer_uses_the_caller_of_the_environment(place: Place) -> None:
    """Without --local: the variables of `trainyard cloud env` are enough, and choose the caller."""
    words = place.words("list")[:-2]
    for profile, code in (("deployer", 0), ("user", 1)):
        env = {**place.env, **place.cloud.env_for(profile)}
        for more in ([], ["--home", str(place.cloud.home)]):
            done = subprocess.run([*words, *more], cwd=place.folder, env=env, capture_output=True, text=True)
            assert done.returncode == code, done.stderr


def test_two_concurrent_puts_both_succeed(place: Place, large: bytes) -> None:
    (place.folder / "large").write_bytes(large)
    with place.process("put", "large") as one, place.process("put", "large") as other:
        told = [process.communicate(timeout=LONGEST_SECONDS)[0] for process in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0), told
    assert place.read("data/large") == large
    assert place.uploads() == []


def test_two_concurrent_gets_do_not_mix_files(place: Place, large: bytes) -> None:
    place.object("data/large", large)
    work = place.folder / "copy" / WORKPLACE
    with slow(place, "GetObject"), place.process("get", "data/large", "--to", "copy"):
        eventually(work.exists, bool)
        assert "another process downloads into" in place.refused("get", "data/large", "--to", "copy")


HOSTILE = ("../out", "/abs", "a/../../out", "a//b", "./c", "b\\..\\c", "d\x1b[31m", "e\nf", ".trainyard-transfers/x")


def test_hostile_names_never_leave_the_folder(place: Place) -> None:
    for name in HOSTILE:
        put_by_hand(place, f"in/{name}", b"evil")
    long = "n" * 300
    for name in ("both", "both/deeper", "Case", "case", long, "good"):
        place.object(f"in/{name}", name.encode()[:10])
    place.object("in/marker/", b"")
    copy = place.folder / "copy"
    told = place.refused("get", "in/", "--to", "copy")
    assert files_below(copy) == {"both": b"both", "Case": b"Case", "case": b"case", "good": b"good"}
    assert "both/deeper: the bucket has an object and a folder of this name" in told
    assert "too long" in told
    assert told.count("not fetched: ") == len(HOSTILE) + 2
    assert "\x1b" not in told
    assert sorted(os.listdir(place.folder)) == ["copy", "stacks"]
    assert "\x1b" not in place.run("list")


def put_by_hand(place: Place, name: str, content: bytes) -> None:
    """The SDK's encoding of names loses some dots and slashes."""
    place.storage.put_object(NAMESPACE, place.bucket, name, content, enable_strict_url_encoding=True)


def test_links_and_folders_in_the_way_are_not_followed(place: Place) -> None:
    outside, copy = place.folder / "outside", place.folder / "copy"
    for folder in (outside, copy / "is-a-folder"):
        folder.mkdir(parents=True)
    (outside / "precious").write_text("kept")
    (copy / "file").symlink_to(outside / "precious")
    (copy / "folder").symlink_to(outside)
    (copy / "dangling").symlink_to(outside / "new")
    (copy / "is-a-file").write_text("x")
    for name in ("file", "folder/precious", "dangling", "is-a-folder", "is-a-file/below", "good"):
        place.object(f"in/{name}", b"evil")
    told = place.refused("get", "in/", "--to", "copy", "--overwrite")
    assert told.count("not fetched: ") == 5
    assert files_below(outside) == {"precious": b"kept"}
    assert (copy / "good").read_bytes() == b"evil"
    (copy / WORKPLACE).symlink_to(outside)
    assert "it is a link, or not a folder" in place.refused("get", "in/good", "--to", "copy")
    assert "not a folder" in place.refused("get", "in/good", "--to", "copy/good")
    # If DIR is a link, its target is meant.
    (place.folder / "named").symlink_to(outside)
    place.run("get", "in/good", "--to", "named")
    assert (outside / "good").exists()


def test_a_missing_object_is_named(place: Place) -> None:
    place.object("data/images/1.png")
    assert "did you mean `images`?" in place.refused("get", "data/image")
    assert "No such file" in place.attempt("put", "nothing").stderr or place.attempt("put", "nothing").returncode == 2
    assert "does not exist" in place.attempt("put", "nothing").stderr
    assert "did you mean `demo`?" in subprocess.run(
        [*place.words("list")[:5], "dem", *place.words("list")[6:]], cwd=place.folder, env=place.env,
        capture_output=True, text=True, timeout=LONGEST_SECONDS,
    ).stderr  # fmt: skip


def test_a_file_that_changes_while_it_is_read_is_not_put(place: Place, large: bytes) -> None:
    source = place.folder / "large"
    source.write_bytes(large)
    with slow(place, "UploadPart", seconds=5), place.process("put", "large") as process:
        eventually(place.part_numbers, lambda numbers: len(numbers) >= 2)
        source.write_bytes(large[::-1])
        told = process.communicate(timeout=LONGEST_SECONDS)[0]
    assert process.returncode == 1
    assert "not put: large: it changed while it was being read" in told
    assert place.names() == []
    assert place.uploads() == []


def test_a_full_disk_and_a_missing_permission_are_reported(place: Place, large: bytes) -> None:
    place.object("in/large", large)
    place.object("in/small", b"x")
    copy = place.folder / "copy"
    copy.mkdir()
    words = " ".join(place.words("get", "in/", "--to", "copy"))
    for options, reason in (("size=20m", "are needed"), ("ro", "[Rr]ead-only file system")):
        script = f'mount -t tmpfs -o {options} tmpfs "{copy}" && exec {words}'
        done = subprocess.run(
            [*mount_namespace(), "sh", "-c", script], cwd=place.folder, env=place.env, capture_output=True, text=True,
            timeout=LONGEST_SECONDS,
        )  # fmt: skip
        assert done.returncode == 1
        assert re.search(f"cannot write into copy: .*{reason}", done.stderr), done.stderr


@pytest.mark.parametrize("command", ["put", "get", "list"])
def test_a_refusal_names_the_missing_statement_and_the_caller(place: Place, command: str) -> None:
    """The statement that it names is the one that helps."""
    place.object("data/there", b"x")
    (place.folder / "mine").write_text("x")
    words = {"put": ("mine",), "get": ("data/there",), "list": ()}[command]
    told = place.refused(command, *words, "--profile", "user")
    assert "Either there is no bucket" in told
    assert "You are the user ocid1.user." in told
    (statement,) = [line.strip() for line in told.splitlines() if line.strip().startswith("Allow ")]
    assert statement.startswith("Allow group scientists to ")
    assert f"where target.bucket.name = '{place.bucket}'" in statement
    identity = Clients(place.cloud).identity
    details = oci.identity.models.CreatePolicyDetails(
        compartment_id=place.cloud.compartment, name=place.bucket, description="as told", statements=[statement]
    )
    policy = identity.create_policy(details).data
    try:
        place.run(command, *words, "--profile", "user")
    finally:
        identity.delete_policy(policy.id)
