# SPDX-License-Identifier: Apache-2.0
"""Object storage through the official SDK: parts, versions, copies, ranges, lists."""

import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import oci
import pytest

from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import refusal

models = oci.object_storage.models
NAMESPACE = "trainyardlocal"
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Bucket:
    """One bucket of a test's own."""

    storage: Any
    name: str
    files: Path

    def put(self, name: str, content: bytes = b"x", **more: Any) -> Any:
        return self.storage.put_object(NAMESPACE, self.name, name, content, **more).headers

    def read(self, name: str, **more: Any) -> bytes:
        return bytes(self.storage.get_object(NAMESPACE, self.name, name, **more).data.content)

    def delete(self, name: str, **more: Any) -> Any:
        return self.storage.delete_object(NAMESPACE, self.name, name, **more).headers

    def versions(self, **more: Any) -> list[tuple[str, str, bool]]:
        listed = self.storage.list_object_versions(NAMESPACE, self.name, **more).data.items
        return [(item.name, item.version_id, item.is_delete_marker) for item in listed]

    def upload(self, name: str, **more: Any) -> str:
        details = models.CreateMultipartUploadDetails(object=name, **more)
        return str(self.storage.create_multipart_upload(NAMESPACE, self.name, details).data.upload_id)

    def part(self, name: str, upload: str, number: int, content: bytes) -> Any:
        etag = self.storage.upload_part(NAMESPACE, self.name, name, upload, number, content).headers["etag"]
        return models.CommitMultipartUploadPartDetails(part_num=number, etag=etag)

    def commit(self, name: str, upload: str, parts: list[Any], **more: Any) -> Any:
        exclude = more.pop("exclude", [])
        details = models.CommitMultipartUploadDetails(parts_to_commit=parts, parts_to_exclude=exclude)
        return self.storage.commit_multipart_upload(NAMESPACE, self.name, name, upload, details, **more).headers


@pytest.fixture
def make(shared_cloud: Cloud) -> Iterator[Callable[..., Bucket]]:
    clients = Clients(shared_cloud)

    def bucket(**more: Any) -> Bucket:
        name = f"bucket-{next(_NUMBERS)}"
        details = models.CreateBucketDetails(name=name, compartment_id=shared_cloud.compartment, **more)
        clients.storage.create_bucket(NAMESPACE, details)
        return Bucket(clients.storage, name, shared_cloud.home / "objects")

    yield bucket
    assert not list((shared_cloud.home / "objects" / "incoming").iterdir())


def test_an_object_is_uploaded_in_parts(make: Callable[..., Bucket]) -> None:
    bucket = make()
    upload = bucket.upload("a/model", content_type="application/x-model", metadata={"owner": "me"})
    parts = [bucket.part("a/model", upload, number, bytes([number]) * 1000) for number in (2, 1, 3)]
    listed = bucket.storage.list_multipart_upload_parts(NAMESPACE, bucket.name, "a/model", upload, limit=2)
    assert ([part.part_number for part in listed.data], bool(listed.next_page)) == ([1, 2], True)
    open_uploads = bucket.storage.list_multipart_uploads(NAMESPACE, bucket.name).data
    assert [item.upload_id for item in open_uploads] == [upload]
    assert refusal(lambda: bucket.storage.delete_bucket(NAMESPACE, bucket.name)) == (409, "BucketNotEmpty")
    headers = bucket.commit("a/model", upload, parts[:2], exclude=[3])
    assert headers["opc-multipart-md5"].endswith("-2")
    assert bucket.read("a/model") == bytes([1]) * 1000 + bytes([2]) * 1000
    found = bucket.storage.head_object(NAMESPACE, bucket.name, "a/model").headers
    assert (found["content-type"], found["opc-meta-owner"], "content-md5" in found) == (
        "application/x-model", "me", False,
    )  # fmt: skip
    assert bucket.storage.list_multipart_uploads(NAMESPACE, bucket.name).data == []


def test_invalid_lists_of_parts_are_refused(make: Callable[..., Bucket]) -> None:
    bucket = make()
    upload = bucket.upload("x")
    first, second = (bucket.part("x", upload, number, b"x") for number in (1, 2))
    again = bucket.part("x", upload, 1, b"y")
    missing = models.CommitMultipartUploadPartDetails(part_num=7, etag="none")
    for parts in ([first, second], [again], [again, missing], [again, again, second], []):
        assert refusal(partial(bucket.commit, "x", upload, parts)) == (400, "InvalidUploadPart")
    assert refusal(lambda: bucket.part("x", upload, 0, b"x")) == (400, "InvalidParameter")
    assert refusal(lambda: bucket.part("y", upload, 1, b"x")) == (404, "NoSuchUpload")
    assert refusal(lambda: bucket.commit("x", upload, [again, second], if_match="no")) == (412, "NoEtagMatch")
    bucket.commit("x", upload, [again, second])
    assert bucket.read("x") == b"yx"
    assert refusal(lambda: bucket.commit("x", upload, [again, second])) == (404, "NoSuchUpload")


def test_an_aborted_upload_leaves_nothing(make: Callable[..., Bucket]) -> None:
    bucket = make()
    before = len(list(bucket.files.iterdir()))
    upload = bucket.upload("x")
    bucket.part("x", upload, 1, b"x")
    bucket.part("x", upload, 1, b"y")
    bucket.storage.abort_multipart_upload(NAMESPACE, bucket.name, "x", upload)
    bucket.storage.delete_bucket(NAMESPACE, bucket.name)
    assert len(list(bucket.files.iterdir())) == before


def test_the_sdks_upload_manager_works(make: Callable[..., Bucket]) -> None:
    bucket = make()
    content = bytes(range(256)) * 10_000
    manager = oci.object_storage.UploadManager(bucket.storage, allow_parallel_uploads=True)
    manager.upload_stream(NAMESPACE, bucket.name, "stream", io.BytesIO(content), part_size=1024 * 1024)
    assert bucket.read("stream") == content


def test_earlier_versions_are_kept_and_can_be_restored(make: Callable[..., Bucket]) -> None:
    bucket = make(versioning="Enabled")
    first, second = (bucket.put("a", content)["version-id"] for content in (b"1", b"2"))
    marker = bucket.delete("a")["version-id"]
    assert refusal(lambda: bucket.read("a")) == (404, "ObjectNotFound")
    assert bucket.versions() == [("a", marker, True), ("a", second, False), ("a", first, False)]
    assert [bucket.read("a", version_id=version) for version in (first, second)] == [b"1", b"2"]
    assert refusal(lambda: bucket.read("a", version_id=marker)) == (404, "ObjectNotFound")
    assert refusal(lambda: bucket.storage.delete_bucket(NAMESPACE, bucket.name)) == (409, "BucketNotEmpty")
    assert bucket.delete("a", version_id=marker)["is-delete-marker"] == "true"
    assert bucket.read("a") == b"2"
    bucket.delete("a", version_id=second)
    assert bucket.read("a") == b"1"
    bucket.delete("a", version_id=first)
    bucket.storage.delete_bucket(NAMESPACE, bucket.name)


def test_versions_come_in_pages(make: Callable[..., Bucket]) -> None:
    bucket = make(versioning="Enabled")
    made = [(name, bucket.put(name)["version-id"], False) for name in ("a", "a", "b", "c/d", "c/e") for _ in range(2)]
    found: list[tuple[str, str, bool]] = []
    page: dict[str, str] = {}
    while True:
        response = bucket.storage.list_object_versions(NAMESPACE, bucket.name, limit=3, **page)
        found += [(item.name, item.version_id, item.is_delete_marker) for item in response.data.items]
        if not response.next_page:
            break
        page = {"page": response.next_page}
    assert sorted(found) == sorted(made)
    assert [name for name, _, _ in found] == sorted(name for name, _, _ in made)
    response = bucket.storage.list_object_versions(NAMESPACE, bucket.name, delimiter="/", prefix="c/", fields="size")
    assert (len(response.data.items), response.data.items[0].size) == (4, 1)
    assert bucket.storage.list_object_versions(NAMESPACE, bucket.name, delimiter="/").data.prefixes == ["c/"]


def test_suspended_versioning_keeps_no_more_versions(make: Callable[..., Bucket]) -> None:
    bucket = make(versioning="Enabled")
    bucket.put("a", b"1")
    bucket.storage.update_bucket(NAMESPACE, bucket.name, models.UpdateBucketDetails(versioning="Suspended"))
    bucket.put("a", b"2")
    assert len(bucket.versions()) == 1


def test_a_copy_is_a_work_request(make: Callable[..., Bucket]) -> None:
    source, target = make(), make()
    etag = source.put("a", b"content", opc_meta={"owner": "me"})["etag"]

    def copy(**more: Any) -> Any:
        details = models.CopyObjectDetails(
            **{
                "source_object_name": "a", "destination_region": "us-ashburn-1", "destination_namespace": NAMESPACE,
                "destination_bucket": target.name, "destination_object_name": "b/c", **more,
            }
        )  # fmt: skip
        return source.storage.copy_object(NAMESPACE, source.name, details)

    response = copy(source_object_if_match_e_tag=etag)
    assert response.status == 202
    request = source.storage.get_work_request(response.headers["opc-work-request-id"]).data
    assert (request.status, request.operation_type) == ("COMPLETED", "COPY_OBJECT")
    source.delete("a")
    assert target.read("b/c") == b"content"
    assert target.storage.head_object(NAMESPACE, target.name, "b/c").headers["opc-meta-owner"] == "me"
    assert refusal(copy) == (404, "ObjectNotFound")
    source.put("a")
    assert refusal(lambda: copy(destination_object_if_none_match_e_tag="*")) == (412, "IfNoneMatchFailed")
    assert refusal(lambda: copy(source_object_if_match_e_tag="stale")) == (412, "NoEtagMatch")
    assert refusal(lambda: copy(destination_bucket="none")) == (404, "BucketNotFound")
    assert refusal(lambda: copy(destination_region="elsewhere")) == (400, "InvalidParameter")


@pytest.mark.parametrize(
    ("wanted", "content"),
    [("bytes=0-0", b"0"), ("bytes=2-4", b"234"), ("bytes=7-", b"789"), ("bytes=-2", b"89"), ("bytes=5-99", b"56789")],
)
def test_a_range_of_an_object_is_returned(make: Callable[..., Bucket], wanted: str, content: bytes) -> None:
    bucket = make()
    bucket.put("a", b"0123456789")
    response = bucket.storage.get_object(NAMESPACE, bucket.name, "a", range=wanted)
    assert (response.status, response.data.content) == (206, content)
    assert response.headers["content-range"].endswith("/10")
    assert refusal(lambda: bucket.read("a", range="bytes=10-11")) == (416, "InvalidRange")


def test_objects_are_listed_by_prefix_and_delimiter(make: Callable[..., Bucket]) -> None:
    bucket = make()
    for name in ("a/1", "a/2", "a/b/3", "c", "d/4", "e"):
        bucket.put(name)

    def listed(**more: Any) -> tuple[list[str], list[str], str | None]:
        data = bucket.storage.list_objects(NAMESPACE, bucket.name, **more).data
        return [item.name for item in data.objects], data.prefixes or [], data.next_start_with

    assert listed(delimiter="/") == (["c", "e"], ["a/", "d/"], None)
    assert listed(delimiter="/", prefix="a/") == (["a/1", "a/2"], ["a/b/"], None)
    assert listed(prefix="a/", limit=2) == (["a/1", "a/2"], [], "a/b/3")
    assert listed(start="c", end="e") == (["c", "d/4"], [], None)
    assert listed(start_after="c", delimiter="/") == (["e"], ["d/"], None)
    item = bucket.storage.list_objects(NAMESPACE, bucket.name, prefix="c", fields="name,size,md5").data.objects[0]
    assert (item.size, bool(item.md5), item.etag) == (1, True, None)
    assert refusal(lambda: listed(fields="colour")) == (400, "InvalidParameter")


def test_many_objects_are_deleted_in_one_call(make: Callable[..., Bucket]) -> None:
    bucket = make()
    bucket.put("a")
    named = [models.BatchDeleteObjectIdentifier(object_name=name) for name in ("a", "b")]
    details = models.BatchDeleteObjectsDetails(objects=named)
    result = bucket.storage.batch_delete_objects(NAMESPACE, bucket.name, details).data
    assert [item.object_name for item in result.deleted] == ["a"]
    assert [(item.object_name, item.status_code) for item in result.failed] == [("b", 404)]


def test_subresources_of_a_bucket_are_listed_changed_and_deleted(make: Callable[..., Bucket]) -> None:
    bucket = make()
    storage = bucket.storage
    assert storage.list_retention_rules(NAMESPACE, bucket.name).data.items == []
    assert storage.list_preauthenticated_requests(NAMESPACE, bucket.name).data == []
    get = storage.get_object_lifecycle_policy
    assert refusal(lambda: get(NAMESPACE, bucket.name)) == (404, "LifecyclePolicyNotFound")
    rule = models.ObjectLifecycleRule(name="old", action="DELETE", time_amount=30, time_unit="DAYS", is_enabled=True)
    details = models.PutObjectLifecyclePolicyDetails(items=[rule])
    storage.put_object_lifecycle_policy(NAMESPACE, bucket.name, details)
    assert get(NAMESPACE, bucket.name).data.items[0].time_amount == 30
    storage.delete_object_lifecycle_policy(NAMESPACE, bucket.name)
    assert refusal(lambda: get(NAMESPACE, bucket.name)) == (404, "LifecyclePolicyNotFound")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/", "a//b", "..", "%2e%2e%2f", "a\u2028b", "a" * 1024])
def test_no_object_name_is_used_as_a_path(make: Callable[..., Bucket], name: str) -> None:
    bucket = make()
    bucket.put(name, name.encode())
    assert bucket.read(name) == name.encode()
    upload = bucket.upload(name)
    bucket.commit(name, upload, [bucket.part(name, upload, 1, b"parts")])
    assert bucket.read(name) == b"parts"
    assert bucket.storage.list_objects(NAMESPACE, bucket.name).data.objects[0].name == name
    bucket.delete(name)


def test_an_upload_that_is_refused_leaves_no_file(make: Callable[..., Bucket]) -> None:
    bucket = make()
    assert refusal(lambda: bucket.put("a", b"x", if_match="none")) == (412, "NoEtagMatch")
    assert refusal(lambda: bucket.put("a", b"x", content_md5="AAAA")) == (400, "UnmatchedContentMD5")
    assert refusal(lambda: bucket.put("a" * 1025)) == (400, "InvalidParameter")


@pytest.mark.parametrize("value", ["a\r\nx-injected: 1", "\0", " a", "a\x7f"])
def test_object_metadata_cannot_inject_headers(make: Callable[..., Bucket], value: str) -> None:
    bucket = make()
    bucket.put("a")
    for call in (
        lambda: bucket.read("a", http_response_content_type=value),
        lambda: bucket.upload("b", content_type=value),
        lambda: bucket.upload("b", metadata={"owner": value}),
        lambda: bucket.upload("b", metadata={value: "me"}),
    ):
        assert refusal(call) == (400, "InvalidParameter")
    read = bucket.storage.get_object(NAMESPACE, bucket.name, "a", http_response_content_type="text/plain; a=ü")
    assert (read.data.content, read.headers["content-type"][:10]) == (b"x", "text/plain")
