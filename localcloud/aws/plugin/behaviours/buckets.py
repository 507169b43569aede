# SPDX-License-Identifier: Apache-2.0
"""Buckets: their names are global, and their creation names the region."""

from typing import Any

from components.platform.calls import Call
from components.platform.values import Properties
from localcloud.aws.plugin.rows import fill
from localcloud.aws.plugin.session import ATTEMPT, all_tags
from localcloud.aws.plugin.shapes import Judged
from localcloud.aws.plugin.table import AwsResource
from localcloud.aws.plugin.types.buckets import BUCKET_ARN
from localcloud.plugins.table import NameTakenError

# The only region that a creation must not name.
_UNNAMED = "us-east-1"
_AT_ONCE = 1000


class BucketResource(AwsResource):
    """A bucket. It is tagged after its creation: moto does not accept tags with it, while S3 does since 2025."""

    def _create(self, call: Call, inputs: Properties, mark: str) -> Any:
        region = self.region(inputs)
        made = self.creation(Judged(self.row.renamed), inputs)
        if region != _UNNAMED:
            made["CreateBucketConfiguration"] = {"LocationConstraint": region}
        elif self._get(call, inputs["bucket"], inputs) is not None:
            # In this region the creation of an existing bucket succeeds.
            raise taken_error(call, inputs["bucket"], self._ways_out(call, inputs["bucket"], inputs["bucket"]))
        self.write(call, inputs, self.row.create, made)
        self._put_tags(call, inputs, {ATTEMPT: mark})
        return {}

    def _left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        return self._of_same_name(call, inputs, mark) if self.region(inputs) == _UNNAMED else None

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(inputs["bucket"])

    def _put_tags(self, call: Call, inputs: Properties, more: Properties) -> None:
        tags = {**all_tags(self._session().default_tags, inputs), **more}
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        path = fill(BUCKET_ARN, self.around(inputs["bucket"], inputs))
        self.write(call, inputs, "s3control:TagResource", {**path, "Tags": pairs})

    def _of_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        """A bucket that a killed attempt left: it has the attempt's mark, or is empty and has no tags yet."""
        model = self._get(call, inputs["bucket"], inputs)
        tags = {} if model is None else (self.live(model).get("tags") or {})
        if model is None or (tags and tags.get(ATTEMPT) != mark):
            return None
        empty = not self.write(call, inputs, "ListObjectVersions", {"Bucket": inputs["bucket"], "MaxKeys": 1}).get(
            "Versions"
        )
        if tags.get(ATTEMPT) != mark:
            if not empty:
                return None
            self._put_tags(call, inputs, {ATTEMPT: mark})
        return model

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        if inputs.get("forceDestroy") and self._get(call, id, inputs) is not None:
            self._empty(call, id, inputs)
        super().delete(call, id, outputs, inputs)

    def _empty(self, call: Call, id: str, inputs: Properties) -> None:  # noqa: A002
        gone = 0
        while True:
            page = self.write(call, inputs, "ListObjectVersions", {"Bucket": id, "MaxKeys": _AT_ONCE})
            listed = [*(page.get("Versions") or ()), *(page.get("DeleteMarkers") or ())]
            if not listed:
                return
            objects = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in listed]
            self.write(call, inputs, "DeleteObjects", {"Bucket": id, "Delete": {"Objects": objects, "Quiet": True}})
            gone += len(objects)
            call.report.status(f"{gone} objects removed")


class VersioningResource(AwsResource):
    """Versioning of a bucket. Once enabled it can only be suspended, not turned off."""

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        self._while_in_use(call, lambda: self._delete(id, {**outputs, **inputs}))


def taken_error(call: Call, name: str, remedy: str) -> NameTakenError:
    return NameTakenError(f"Create {call.name}: a bucket with the name {name} is there already.", remedy)
