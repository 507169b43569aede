# SPDX-License-Identifier: Apache-2.0
"""S3 buckets: default settings (encryption with S3's keys, public access blocked, no ACLs), payers, tags, and encoded
names in lists."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from localcloud.aws.additions.outside import Operations, action_result
from localcloud.aws.moto_state import moto_backend


def install_bucket_defaults(backend: Any) -> None:
    """Changes moto's backend. Called once in a process."""
    create, get_encryption = backend.create_bucket, backend.get_bucket_encryption

    def create_bucket(self: Any, bucket_name: str, *args: Any, **named: Any) -> Any:
        from moto.s3.models import PublicAccessBlock

        bucket = create(self, bucket_name, *args, **named)
        bucket.encryption = default_encryption()
        bucket.public_access_block = PublicAccessBlock(True, True, True, True)
        bucket.ownership_rule = "BucketOwnerEnforced"
        return bucket

    def get_bucket_encryption(self: Any, bucket_name: str) -> Any:
        # Every bucket is encrypted: without a rule, by the default one.
        return get_encryption(self, bucket_name) or default_encryption()

    backend.create_bucket, backend.get_bucket_encryption = create_bucket, get_bucket_encryption


# With `encoding-type=url`: the fields of a list that S3 encodes and moto does not. Without encoding, XML cannot hold
# every name of an object.
_ENCODED = {
    "ListObjects": ("Prefix", "Delimiter", "Marker", "NextMarker", "CommonPrefixes.Prefix"),
    "ListObjectsV2": ("Delimiter", "StartAfter"),
    "ListObjectVersions": (
        "Prefix", "Delimiter", "KeyMarker", "NextKeyMarker", "CommonPrefixes.Prefix", "Versions.Key",
        "DeleteMarkers.Key",
    ),
    "ListMultipartUploads": ("Prefix", "Delimiter", "KeyMarker", "NextKeyMarker", "Uploads.Key"),
}  # fmt: skip


def encode_lists(responses: Any) -> None:
    """Changes moto's responses of S3. Called once in a process."""
    serialize = responses.serialized

    def serialized(self: Any, answer: Any) -> Any:
        if self.querystring.get("encoding-type") == ["url"]:
            for path in _ENCODED.get(self.data.get("Action"), ()):
                rows, _, field = path.rpartition(".")
                for row in answer.result.get(rows) or () if rows else (answer.result,):
                    if row.get(field):
                        row[field] = quote(row[field])
                answer.result["EncodingType"] = "url"
        return serialize(self, answer)

    responses.serialized = serialized


class BucketOperations(Operations):
    """Operations of S3."""

    def _bucket_response_put(self, request: Any, bucket_name: str, querystring: Any) -> Any:
        """A new bucket has the tags of its creation, which moto drops."""
        is_new = bucket_name not in self.backend.buckets
        answer = self._by_moto("_bucket_response_put", request, bucket_name, querystring)
        if is_new and self.body:
            tags = ElementTree.fromstring(self.body).iter("Tag")
            given = {tag.findtext("Key"): tag.findtext("Value") or "" for tag in tags}
            self.backend.put_bucket_tagging(bucket_name, given)
        return answer

    def list_objects(self) -> Any:
        """Answers GetBucketRequestPayment, for which moto lists objects."""
        if "requestPayment" not in self.querystring:
            return self._by_moto("list_objects")
        self.data["Action"] = "GetBucketRequestPayment"
        return self.serialized(action_result({"Payer": self.backend.get_bucket(self.bucket_name).payer}))


def default_encryption() -> dict[str, Any]:
    return {"Rule": {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": False}}


class BucketTags(Operations):
    """Operations of S3 Control. They refuse buckets that do not exist, which moto accepts."""

    def list_tags_for_resource(self) -> Any:
        return self._of_existing_bucket("list_tags_for_resource")

    def tag_resource(self) -> Any:
        return self._of_existing_bucket("tag_resource")

    def untag_resource(self) -> Any:
        return self._of_existing_bucket("untag_resource")

    def _of_existing_bucket(self, operation: str) -> Any:
        moto_backend("s3").get_bucket(self._get_param("ResourceArn").rpartition(":")[2])
        return self._by_moto(operation)
