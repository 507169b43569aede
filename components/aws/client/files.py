# SPDX-License-Identifier: Apache-2.0
"""Amazon S3, as `components.platform.files` asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from components.aws.client.runs import parse_folder
from components.aws.client.session import session_of_caller
from components.platform.calls import Call, ProviderError, call_of
from components.platform.files import StoreRequest, TransferError
from components.s3.calls import ACCESS_CODES, code_of
from components.s3.session import Session
from components.s3.store import BucketStore

_LIST, _READ = ("s3:ListBucket",), ("s3:GetObject",)
_WRITE = ("s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject")
# By purpose: what is done with the bucket, and what with its objects.
_ACTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "list": (_LIST, ()),
    "get": (_LIST, _READ),
    "put": (_LIST, _WRITE),
}


@dataclass(frozen=True)
class AwsOpener:
    """`components.platform.files.StoreOpener`, by the same credentials as every client of AWS's."""

    request: StoreRequest
    session: Session
    call: Call

    def bucket(self, name: str) -> BucketStore:
        return BucketStore(self.session, self.call, name, partial(self._explain, name))

    def folder(self, address: str) -> tuple[BucketStore, str]:
        place = parse_folder(address)
        if place is None:
            raise TransferError(f"`{address}` is not a folder in a bucket of S3")
        return self.bucket(place.bucket), place.prefix

    def _explain(self, bucket: str, error: ProviderError) -> ProviderError:
        """The same error, with the least that lets the caller do all of this if it is a refusal."""
        if code_of(error.__cause__) not in ACCESS_CODES:
            return error
        lines = ["A statement is missing in a policy of yours, or of a group that you are in. These are enough:"]
        lines += [f"  {json.dumps(statement)}" for statement in statements(self.request.purpose, bucket)]
        lines.append("`trainyard access STACK` shows what the stack grants.")
        if self.request.where.cloud is not None:
            lines.append("On the local cloud, `trainyard cloud log` shows the call and who lacked what.")
        return ProviderError(error.cause, "\n".join(lines))


def statements(purpose: str, bucket: str) -> list[Mapping[str, object]]:
    """What lets a caller list, get or put."""
    of_bucket, of_objects = _ACTIONS[purpose]
    rows = ((of_bucket, f"arn:aws:s3:::{bucket}"), (of_objects, f"arn:aws:s3:::{bucket}/*"))
    return [{"Effect": "Allow", "Action": list(actions), "Resource": arn} for actions, arn in rows if actions]


def make(request: StoreRequest) -> AwsOpener:
    session = session_of_caller(request.where)
    return AwsOpener(request, session, call_of(request.purpose, request.where.tell))
