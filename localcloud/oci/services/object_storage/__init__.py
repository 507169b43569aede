# SPDX-License-Identifier: Apache-2.0
"""Object storage: buckets, and objects as files on disk."""

from __future__ import annotations

from localcloud.oci import tenancy
from localcloud.oci.operations import ApiCall, ApiOperation
from localcloud.oci.services.object_storage import buckets, listing, objects, uploads
from localcloud.server import http
from localcloud.server.api_errors import ApiError
from localcloud.server.http import Json, Reply

SERVICE = "object_storage"
_STREAMED = frozenset({"PutObject", "UploadPart"})
# The field of a bucket's policy. OCI's model lacks it, so clients never see it.
_POLICY = "lifecyclePolicy"


def get_namespace(call: ApiCall) -> Reply:
    return Reply(200, tenancy.NAMESPACE)


def get_namespace_metadata(call: ApiCall) -> Reply:
    buckets.require_namespace(call)
    return Reply(
        200,
        {
            "namespace": tenancy.NAMESPACE,
            "defaultS3CompartmentId": tenancy.TENANCY,
            "defaultSwiftCompartmentId": tenancy.TENANCY,
        },
    )


def object_storage_operations() -> list[ApiOperation]:
    bucket = "/n/{namespaceName}/b/{bucketName}"
    item, upload = f"{bucket}/o/{{objectName}}", f"{bucket}/u/{{objectName}}"
    rows = (
        ("GetNamespace", "GET", "/n", get_namespace, ""),
        ("GetNamespaceMetadata", "GET", "/n/{namespaceName}", get_namespace_metadata, ""),
        ("CreateBucket", "POST", "/n/{namespaceName}/b", buckets.create_bucket, "CreateBucketDetails"),
        ("ListBuckets", "GET", "/n/{namespaceName}/b", buckets.list_buckets, ""),
        ("GetBucket", "GET", bucket, buckets.get_bucket, ""),
        ("HeadBucket", "HEAD", bucket, buckets.head_bucket, ""),
        ("UpdateBucket", "POST", bucket, buckets.update_bucket, "UpdateBucketDetails"),
        ("DeleteBucket", "DELETE", bucket, buckets.delete_bucket, ""),
        ("ListObjects", "GET", f"{bucket}/o", listing.answer_with_objects, ""),
        ("ListObjectVersions", "GET", f"{bucket}/objectversions", listing.list_versions, ""),
        ("PutObject", "PUT", item, objects.put_object, ""),
        ("GetObject", "GET", item, objects.get_object, ""),
        ("HeadObject", "HEAD", item, objects.head_object, ""),
        ("DeleteObject", "DELETE", item, objects.delete_object, ""),
        ("RenameObject", "POST", f"{bucket}/actions/renameObject", objects.rename_object, "RenameObjectDetails"),
        ("CopyObject", "POST", f"{bucket}/actions/copyObject", objects.copy_object, "CopyObjectDetails"),
        (
            "BatchDeleteObjects", "POST", f"{bucket}/actions/batchDeleteObjects", objects.batch_delete,
            "BatchDeleteObjectsDetails",
        ),
        ("CreateMultipartUpload", "POST", f"{bucket}/u", uploads.create_upload, "CreateMultipartUploadDetails"),
        ("ListMultipartUploads", "GET", f"{bucket}/u", uploads.list_uploads, ""),
        ("UploadPart", "PUT", upload, uploads.put_part, ""),
        ("ListMultipartUploadParts", "GET", upload, uploads.list_parts, ""),
        ("CommitMultipartUpload", "POST", upload, uploads.commit_upload, "CommitMultipartUploadDetails"),
        ("AbortMultipartUpload", "DELETE", upload, uploads.abort_upload, ""),
        ("GetObjectLifecyclePolicy", "GET", f"{bucket}/l", get_lifecycle, ""),
        ("PutObjectLifecyclePolicy", "PUT", f"{bucket}/l", put_lifecycle, "PutObjectLifecyclePolicyDetails"),
        ("DeleteObjectLifecyclePolicy", "DELETE", f"{bucket}/l", delete_lifecycle, ""),
        ("ListRetentionRules", "GET", f"{bucket}/retentionRules", list_no_retention_rules, ""),
        ("ListPreauthenticatedRequests", "GET", f"{bucket}/p", list_nothing_of_bucket, ""),
        ("ListReplicationPolicies", "GET", f"{bucket}/replicationPolicies", list_nothing_of_bucket, ""),
        ("ListReplicationSources", "GET", f"{bucket}/replicationSources", list_nothing_of_bucket, ""),
    )  # fmt: skip
    return [
        ApiOperation(name, method, path, handler, SERVICE, details, streams=name in _STREAMED)
        for name, method, path, handler, details in rows
    ]


def list_no_retention_rules(call: ApiCall) -> Reply:
    buckets.find_bucket(call)
    return Reply(200, {"items": []})


def list_nothing_of_bucket(call: ApiCall) -> Reply:
    buckets.find_bucket(call)
    return Reply(200, [])


def get_lifecycle(call: ApiCall) -> Reply:
    bucket = buckets.find_bucket(call)
    policy = bucket.body.get(_POLICY)
    if not policy:
        raise ApiError(404, "LifecyclePolicyNotFound", f"The bucket {bucket.name!r} has no lifecycle policy")
    return Reply(200, policy["content"], {"etag": policy["etag"]})


def put_lifecycle(call: ApiCall) -> Reply:
    bucket = buckets.find_bucket(call)
    moment = http.current_moment()
    content: Json = {"timeCreated": http.format_rfc3339(moment), "items": call.details().get("items", [])}
    changed = call.store.put(bucket, body={**bucket.body, _POLICY: {"content": content, "etag": f"{moment}"}})
    return Reply(200, content, {"etag": changed.body[_POLICY]["etag"]})


def delete_lifecycle(call: ApiCall) -> Reply:
    bucket = buckets.find_bucket(call)
    call.store.put(bucket, body={name: value for name, value in bucket.body.items() if name != _POLICY})
    return Reply(204)
