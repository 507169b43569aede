# SPDX-License-Identifier: Apache-2.0
"""Reads the current state of a stack in its AWS account: here its bucket, registry, logs and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from components.aws.client.aws_session import aws_session_of_caller
from components.aws.client.live_access import JUDGED as ACCESS_JUDGED
from components.aws.client.live_access import AccessReader
from components.aws.client.live_ec2 import JUDGED as EC2_JUDGED
from components.aws.client.live_ec2 import Ec2Reader
from components.aws.iam.documents import declared_or_live, principals_in
from components.aws.types import RESOURCE_TYPES, SERVED_TYPES
from components.aws.types.aws_resource_type import AwsResourceType, Read
from components.aws.types.templates import fill_template
from components.platform.calls import call_of
from components.platform.live import LiveQuestion, LiveReading, LiveSide, Reading
from components.platform.review import ReviewedResource
from components.s3 import ACCESS_CODES, Session, call_aws, code_of, is_missing_in_aws

BUCKET = "aws:s3/bucket:Bucket"
PRIVATE = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
JUDGED = {**EC2_JUDGED, **ACCESS_JUDGED}
Row = Mapping[str, Any]


def read_live_aws(question: LiveQuestion) -> LiveSide:
    return LiveReader(question, aws_session_of_caller(question.where)).read()


class LiveReader:
    def __init__(self, question: LiveQuestion, session: Session) -> None:
        self._session = session
        self._question = question
        self._call = call_of("drift", question.where.tell)
        self._declared = question.declared
        # A response without a body has no other code than its HTTP status.
        self.reading = Reading(question.declared, lambda error: code_of(error) in {*ACCESS_CODES, "403"})

    def read(self) -> LiveSide:
        Ec2Reader(self._session, self._call, self.reading).read()
        for bucket in self._declared.of(BUCKET):
            self._bucket(bucket)
        self.read_described()
        AccessReader(self._question, self._session, self.reading).read()
        return self.reading.side(JUDGED)

    def _attempt(self, what: str, operation: Callable[[], Any]) -> Any:
        return call_aws(self._call, what, operation)

    def _bucket(self, bucket: ReviewedResource) -> None:
        name, client = str(bucket.inputs.get("bucket")), self._session.client("s3")
        if self._read(f"the bucket {name}", bucket, lambda: client.head_bucket(Bucket=name), lambda _: {}) is None:
            return
        settings: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Mapping[str, Any]]]] = {
            PRIVATE: (
                lambda: client.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"],
                lambda flags: {flag[0].lower() + flag[1:]: value for flag, value in flags.items()},
            ),
            BUCKET_POLICY: (
                lambda: client.get_bucket_policy(Bucket=name),
                lambda response: {"policy": response["Policy"]},
            ),
            VERSIONING: (
                lambda: client.get_bucket_versioning(Bucket=name),
                lambda response: {"versioningConfiguration": {"status": response.get("Status", "Disabled")}},
            ),
        }
        for type_, (ask, values_of) in settings.items():
            for one in self._declared.of(type_):
                if one.inputs.get("bucket") == name:
                    self._read(f"the {one.type.rpartition(':')[2]} of {name}", one, ask, values_of)

    def _read(
        self, what: str, one: ReviewedResource, ask: Callable[[], Any], values_of: Callable[[Any], Mapping[str, Any]]
    ) -> Any:
        """The properties of one resource. None if it does not exist or may not be read; both are recorded."""
        gone = object()

        def read() -> Any:
            try:
                return ask() or gone
            except Exception as error:
                if _is_not_there(error):
                    return gone
                raise

        answer = self.reading.allowed(what, lambda: self._attempt(f"Read {what}", read))
        if answer is gone:
            self.reading.record_missing(one)
            return None
        if answer is not None:
            inputs = {key: declared_or_live(one.inputs.get(key), value) for key, value in values_of(answer).items()}
            self.reading.record(one, inputs)
        return answer

    def read_described(self) -> None:
        """Resources whose rows say how to read them, and policies on them, which the stack does not declare."""
        for token, row in SERVED_TYPES.items():
            if row.live is None or not row.live.what:
                continue
            for resource in self._declared.of(token):
                what = fill_template(row.live.what, {**resource.inputs, "id": resource.id}) or resource.name
                given = partial(_compared_values, row, resource.inputs)
                self._read(what, resource, partial(self._ask, resource, row, row.reads[0]), given)
                if row.live.policy:
                    policy = partial(self._ask, resource, row, row.live.policy)
                    self._policy(what, policy, row.live.policy_type, resource.id)

    def _ask(self, resource: ReviewedResource, row: AwsResourceType, read: Read) -> Any:
        import jmespath
        from botocore import xform_name

        values = {**resource.inputs, "id": resource.id}
        call = getattr(self._session.client(row.service), xform_name(read.operation))
        return jmespath.search(fill_template(read.at, values), call(**fill_template(read.parameters, values)))

    def _policy(self, what: str, ask: Callable[[], str | None], type_: str, identity: str) -> None:
        def read() -> str | None:
            try:
                return ask()
            except Exception as error:
                if _is_not_there(error):
                    return None
                raise

        text = self.reading.allowed(f"the policy of {what}", lambda: self._attempt(f"Read the policy of {what}", read))
        own = RESOURCE_TYPES[type_].own_policy
        if text and own:
            named = ", ".join(principals_in(text)) or "nobody by name"
            inputs = {own.named_by: identity, own.policy: text}
            self.reading.add(type_, identity, inputs, f"policy of {what}, for {named}")


def _compared_values(row: AwsResourceType, declared: Row, model: Row) -> Mapping[str, Any]:
    """The live values, without those that the cloud fills in where the program gives none."""
    names = row.live.compared.split() if row.live else ()
    members = {name: row.renamed.get(name, name[0].upper() + name[1:]) for name in names}
    return {
        name: model.get(member, model.get(name))
        for name, member in members.items()
        if name in declared or name not in row.computed
    }


def _is_not_there(error: Exception) -> bool:
    code = code_of(error)
    return (
        is_missing_in_aws(error)
        or code.startswith("NoSuch")
        or code.endswith(("NotFound", "NotFoundError", "NotFoundException"))
    )


LIVE_READING = LiveReading(read_live_aws)
