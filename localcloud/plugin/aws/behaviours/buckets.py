# SPDX-License-Identifier: Apache-2.0
"""Buckets: their names are shared by everybody, and their regions are part of the creation."""

from typing import Any

from localcloud.plugin.aws.shapes import Judged
from localcloud.plugin.aws.table import AwsResource
from localcloud.plugin.aws.tags import ATTEMPT, all_tags, visible
from provider.base.errors import ProviderError
from provider.base.resource import Call
from provider.base.values import Properties

# The only region that a creation does not name.
_UNNAMED = "us-east-1"
_AT_ONCE = 1000


class BucketResource(AwsResource):
    """A bucket. Its tags are put whole, after it was created."""

    def _create(self, call: Call, inputs: Properties, mark: str) -> Any:
        region = self.region(inputs)
        made = self.creation(Judged(self.row.renamed), inputs)
        if region != _UNNAMED:
            made["CreateBucketConfiguration"] = {"LocationConstraint": region}
        elif not call.anew and self._get(call, inputs["bucket"], inputs) is not None:
            # This region answers with success for a bucket that is there already.
            there = self._of_same_name(call, inputs, mark)
            if there is None:
                raise taken_error(call, inputs["bucket"], self._ways_out(call, inputs["bucket"]))
            return there
        self.write(call, inputs, self.row.create, made)
        self._put_tags(call, inputs, {ATTEMPT: mark})
        return {}

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(inputs["bucket"])

    def _put_tags(self, call: Call, inputs: Properties, more: Properties) -> None:
        tags = {**all_tags(self._session().default_tags, inputs), **more}
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        self.write(call, inputs, "PutBucketTagging", {"Bucket": inputs["bucket"], "Tagging": {"TagSet": pairs}})

    def _of_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        """An attempt that was killed left its mark, or an empty bucket without any tags."""
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

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        if {"tags", "tagsAll"} & changed.keys():
            live = (self._get(call, id, new) or {}).get("Tags") or ()
            marks = {one["Key"]: one["Value"] for one in live if one["Key"] not in visible({one["Key"]: ""})}
            self._put_tags(call, new, marks)
        super()._update(call, id, {key: value for key, value in changed.items() if key not in ("tags", "tagsAll")}, new)

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
    """Versioning that was on can be suspended, and never turned off."""

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        self._while_in_use(call, lambda: self._delete(id, {**outputs, **inputs}))


def taken_error(call: Call, name: str, remedy: str) -> ProviderError:
    return ProviderError(f"Create {call.name}: a bucket with the name {name} is there already.", remedy)
