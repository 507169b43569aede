# SPDX-License-Identifier: Apache-2.0
"""Reads the current state of a stack in its AWS account: here its bucket, registry, logs and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from components.aws.client.live_access import JUDGED as ACCESS_JUDGED
from components.aws.client.live_access import AccessReader
from components.aws.client.live_ec2 import JUDGED as EC2_JUDGED
from components.aws.client.live_ec2 import Ec2Reader
from components.aws.client.session import session_of_caller
from components.aws.iam.documents import as_declared, principals_in
from components.platform.calls import call_of
from components.platform.live import LiveQuestion, LiveReading, LiveSide, Reading
from components.platform.review import ReviewedResource
from components.s3 import ACCESS_CODES, Session, attempt, code_of, is_gone

BUCKET, REPOSITORY = "aws:s3/bucket:Bucket", "aws:ecr/repository:Repository"
PRIVATE = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
REPOSITORY_POLICY = "aws:ecr/repositoryPolicy:RepositoryPolicy"
SECRET_POLICY = "aws:secretsmanager/secretPolicy:SecretPolicy"
LOG_GROUP, SECRET = "aws:cloudwatch/logGroup:LogGroup", "aws:secretsmanager/secret:Secret"
JUDGED = {**EC2_JUDGED, **ACCESS_JUDGED}
Row = Mapping[str, Any]


def make(question: LiveQuestion) -> LiveSide:
    return _Reader(question, session_of_caller(question.where)).read()


def _is_refused(error: BaseException | None) -> bool:
    # A response without a body has no other code than its HTTP status.
    return code_of(error) in {*ACCESS_CODES, "403"}


class _Reader:
    def __init__(self, question: LiveQuestion, session: Session) -> None:
        self._session = session
        self._question = question
        self._call = call_of("drift", question.where.tell)
        self._declared = question.declared
        self._reading = Reading(question.declared, _is_refused)

    def read(self) -> LiveSide:
        Ec2Reader(self._session, self._call, self._reading).read()
        for bucket in self._declared.of(BUCKET):
            self._bucket(bucket)
        self._concerns()
        AccessReader(self._question, self._session, self._reading).read()
        return self._reading.side(JUDGED)

    def _attempt(self, what: str, operation: Callable[[], Any]) -> Any:
        return attempt(self._call, what, operation)

    def _bucket(self, bucket: ReviewedResource) -> None:
        name, client = str(bucket.inputs.get("bucket")), self._session.client("s3")
        if self._read(f"the bucket {name}", bucket, lambda: client.head_bucket(Bucket=name), _nothing) is None:
            return
        settings: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Mapping[str, Any]]]] = {
            PRIVATE: (lambda: client.get_public_access_block(Bucket=name), _private),
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
                return ask()
            except Exception as error:
                if _is_not_there(error):
                    return gone
                raise

        answer = self._reading.allowed(what, lambda: self._attempt(f"Read {what}", read))
        if answer is gone:
            self._reading.record_missing(one)
            return None
        if answer is not None:
            inputs = {key: as_declared(one.inputs.get(key), value) for key, value in values_of(answer).items()}
            self._reading.record(one, inputs)
        return answer

    def _concerns(self) -> None:
        """Whether registry, logs and secrets exist, and which other principals have access."""
        for one in self._declared.of(REPOSITORY):
            self._repository(one)
        for one in self._declared.of(LOG_GROUP):
            self._log_group(one)
        for one in self._declared.of(SECRET):
            self._secret(one)

    def _repository(self, one: ReviewedResource) -> None:
        client, what = self._session.client("ecr"), f"the repository {one.id}"

        def values_of(answer: Any) -> Mapping[str, Any]:
            return {"imageTagMutability": answer["repositories"][0]["imageTagMutability"]}

        self._read(what, one, lambda: client.describe_repositories(repositoryNames=[one.id]), values_of)
        ask = partial(client.get_repository_policy, repositoryName=one.id)
        self._policy(what, lambda: ask()["policyText"], REPOSITORY_POLICY, {"repository": one.id})

    def _log_group(self, one: ReviewedResource) -> None:
        ask = partial(self._session.client("logs").describe_log_groups, logGroupNamePrefix=one.id)
        answer = self._reading.allowed("the log groups", lambda: self._attempt("List the log groups", ask))
        if answer is None:
            return
        row = next((row for row in answer["logGroups"] if row["logGroupName"] == one.id), None)
        if row is None:
            self._reading.record_missing(one)
        else:
            self._reading.record(one, {"retentionInDays": row.get("retentionInDays")})

    def _secret(self, one: ReviewedResource) -> None:
        client, what = self._session.client("secretsmanager"), f"the secret {one.inputs.get('name')}"
        self._read(what, one, lambda: client.describe_secret(SecretId=one.id), _nothing)
        ask = partial(client.get_resource_policy, SecretId=one.id)
        self._policy(what, lambda: ask().get("ResourcePolicy"), SECRET_POLICY, {"secretArn": one.id})

    def _policy(self, what: str, ask: Callable[[], str | None], type_: str, inputs: Mapping[str, str]) -> None:
        """A policy on the resource itself, which the stack does not declare."""

        def read() -> str | None:
            try:
                return ask()
            except Exception as error:
                if _is_not_there(error):
                    return None
                raise

        text = self._reading.allowed(f"the policy of {what}", lambda: self._attempt(f"Read the policy of {what}", read))
        if text:
            named = ", ".join(principals_in(text)) or "nobody by name"
            self._reading.add(
                type_, next(iter(inputs.values())), {**inputs, "policy": text}, f"policy of {what}, for {named}"
            )


def _is_not_there(error: Exception) -> bool:
    code = code_of(error)
    return (
        is_gone(error) or code.startswith("NoSuch") or code.endswith(("NotFound", "NotFoundError", "NotFoundException"))
    )


def _nothing(row: Any) -> Mapping[str, Any]:
    return {}


def _private(response: Any) -> Mapping[str, Any]:
    rows = response["PublicAccessBlockConfiguration"]
    return {key[0].lower() + key[1:]: value for key, value in rows.items()}


LIVE_READING = LiveReading(make)
