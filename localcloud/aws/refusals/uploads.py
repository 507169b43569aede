# SPDX-License-Identifier: Apache-2.0
"""Uploads in parts. moto finds one by its id alone, whatever bucket and key a request names."""

from __future__ import annotations

from localcloud.aws.account import ACCOUNT
from localcloud.aws.calls import AwsCall
from localcloud.aws.errors import Reason, RefusalError


def refuse_others(call: AwsCall) -> None:
    """Refuses a call about an upload that is not of the bucket and key by which the call was judged."""
    if "uploadId" not in call.parameters:
        return
    from moto.s3.models import s3_backends

    bucket = s3_backends[ACCOUNT]["aws"].buckets.get(call.text("Bucket"))
    if bucket is None:
        return
    upload, key = bucket.multiparts.get(call.text("uploadId")), call.text("Key")
    if upload is not None and upload.key_name == key:
        return
    # Who completes an upload twice hears the same twice.
    made = getattr(bucket.keys.get(key), "multipart", None)
    if call.operation == "CompleteMultipartUpload" and made is not None and made.id == call.text("uploadId"):
        return
    raise RefusalError(
        Reason.REFUSED,
        "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or"
        " completed.", "NoSuchUpload", 404,
    )  # fmt: skip
