# SPDX-License-Identifier: Apache-2.0
"""Reads the current state of a stack in its AWS account: here its bucket, registry, logs and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from components.aws.client.aws_session import aws_session_of_caller
from components.aws.client.live_access import JUDGED as ACCESS_JUDGED
from components.aws.client.live_access import READ_TYPES as READ_OF_ACCESS
from components.aws.client.live_access import AccessReader
from components.aws.client.live_beside import NOT_SERVED, read_beside_in_aws
from components.aws.client.live_ec2 import JUDGED as EC2_JUDGED
from components.aws.client.live_ec2 import READ_TYPES as READ_OF_EC2
from components.aws.client.live_ec2 import Ec2Reader
from components.aws.client.live_values import declared_or_live_setting, record_aws_tags
from components.aws.iam.documents import principals_in
from components.aws.types import RESOURCE_TYPES, SERVED_TYPES
from components.aws.types.aws_resource_type import AwsResourceType, Read
from components.aws.types.templates import fill_template
from components.platform.calls import call_of
from components.platform.live import LiveQuestion, LiveReading, LiveSide, Reading
from components.platform.review import ReviewedResource
from components.s3 import ACCESS_CODES, Session, call_aws, code_of, is_missing_in_aws

BUCKET = "aws:s3/bucket:Bucket"
# Objects are the content of a bucket, which runs change. The others give nobody access, and their loss is seen.
_WITHOUT_DRIFT = frozenset({
    "aws:s3/bucketObjectv2:BucketObjectv2", "aws:ec2/placementGroup:PlacementGroup", "aws:ec2/eip:Eip",
    "aws:ec2/eipAssociation:EipAssociation", "aws:ec2/capacityReservation:CapacityReservation",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy",
})  # fmt: skip
READ_TYPES = frozenset({
    *(token for token, row in SERVED_TYPES.items() if row.live is not None), *_WITHOUT_DRIFT, *READ_OF_ACCESS,
    *READ_OF_EC2,
})  # fmt: skip
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
        self._gone = set[str]()
        # A response without a body has no other code than its HTTP status.
        self.reading = Reading(question.declared, lambda error: code_of(error) in {*ACCESS_CODES, "403"})

    def read(self) -> LiveSide:
        self.reading.name_unread_types(READ_TYPES)
        Ec2Reader(self._session, self._call, self.reading).read()
        self.read_described()
        read_beside_in_aws(self._declared, self._session, self.reading, self._read_beside)
        AccessReader(self._question, self._session, self.reading).read()
        return self.reading.side(JUDGED)

    def _answer(self, what: str, ask: Callable[[], Any], missing: Any = None, codes: str = "") -> Any:
        """The answer, or `missing` if there is nothing, which further error codes may say. None if the caller may not
        read it, which is recorded."""

        def read() -> Any:
            try:
                return ask()
            except Exception as error:
                if _is_not_there(error) or code_of(error) in codes.split():
                    return missing
                raise

        return self.reading.allowed(what, lambda: call_aws(self._call, f"Read {what}", read))

    def _read(
        self, what: str, one: ReviewedResource, ask: Callable[[], Any], values_of: Callable[[Any], Mapping[str, Any]]
    ) -> Any:
        """The properties of one resource. None if it does not exist or may not be read; both are recorded."""
        gone = object()
        answer = self._answer(what, lambda: ask() or gone, gone)
        if answer is gone:
            self.reading.record_missing(one)
            return None
        if answer is not None:
            live = values_of(answer)
            # An id is not among the inputs.
            expected = {"id": one.id} if "id" in live else {}
            declared = {**one.inputs, **expected}
            self.reading.record(
                one, {key: declared_or_live_setting(declared.get(key), value) for key, value in live.items()}, expected
            )
        return answer

    def read_described(self) -> None:
        """Resources whose rows say how to read them, and policies on them, which the stack does not declare."""
        for token, row in SERVED_TYPES.items():
            if row.live is None or not row.live.what:
                continue
            for resource in self._declared.of(token):
                its = {**resource.inputs, "id": resource.id}
                # Settings of a bucket that is gone are gone with it.
                if its.get("bucket") in self._gone:
                    continue
                what = str(fill_template(row.live.what, its) or resource.name)
                read = partial(self._ask, row.service, row.live.read or row.reads[0], its)
                answer = self._read(what, resource, read, partial(_compared_values, row, resource.inputs))
                if answer is None:
                    self._gone |= {resource.id} if token == BUCKET else set()
                    continue
                if row.live.tags:
                    answer = self._read_beside(f"the tags of {what}", row.service, row.live.tags, its) or {"Tags": ()}
                if isinstance(answer, Mapping) and "Tags" in answer:
                    record_aws_tags(self.reading, resource, row.tags, answer["Tags"])
                if row.live.policy:
                    policy = partial(self._ask, row.service, row.live.policy, its)
                    self._policy(what, policy, row.live.policy_type, resource.id)

    def _ask(self, service: str, read: Read, its: Mapping[str, Any]) -> Any:
        import jmespath
        from botocore import xform_name

        call = getattr(self._session.client(service), xform_name(read.operation))
        return jmespath.search(fill_template(read.at, its), call(**fill_template(read.parameters, its)))

    def _read_beside(self, what: str, service: str, read: Read, its: Mapping[str, Any]) -> Any:
        """What others may have made. None if there is nothing, or if the caller may not read it, which is recorded."""
        return self._answer(what, partial(self._ask, service, read, its), codes=f"{read.missing} {NOT_SERVED}")

    def _policy(self, what: str, ask: Callable[[], str | None], type_: str, identity: str) -> None:
        text = self._answer(f"the policy of {what}", ask)
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
