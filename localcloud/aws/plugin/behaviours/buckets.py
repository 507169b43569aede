# SPDX-License-Identifier: Apache-2.0
"""Buckets and their objects."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from components.aws.types.aws_resource_type import ATTEMPT_TAG
from components.aws.types.buckets import BUCKET_ARN
from components.aws.types.templates import fill_template
from components.platform.calls import Call, InputFailure, ProviderError
from components.platform.values import UNKNOWN, Properties, canonical_json
from localcloud.aws.border.xml_body import fits_xml
from localcloud.aws.plugin.session import all_tags
from localcloud.aws.plugin.shapes import ParameterBuilder
from localcloud.aws.plugin.table import AwsResource
from localcloud.plugins.resource_table import NameTakenError

# A creation names the bucket's region, except for this one.
_UNNAMED = "us-east-1"
_AT_ONCE = 1000


class BucketResource(AwsResource):
    """A bucket. It is tagged after the creation, because moto does not support tags in the creation."""

    def _create(self, call: Call, inputs: Properties, mark: str) -> Any:
        region = self.region(inputs)
        made = self.creation(ParameterBuilder(self.row.renamed), inputs)
        if region != _UNNAMED:
            made["CreateBucketConfiguration"] = {"LocationConstraint": region}
        elif self._get(call, inputs["bucket"], inputs) is not None:
            # In this region, creating an existing bucket succeeds.
            remedy = self._name_taken_remedies(call, inputs["bucket"], inputs["bucket"])
            raise NameTakenError(f"Create {call.name}: the bucket {inputs['bucket']} already exists.", remedy)
        self.write(call, inputs, self.row.create.operation, made)
        self._put_tags(call, inputs, {ATTEMPT_TAG: mark})
        return {}

    def _find_left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        return self._find_same_name(call, inputs, mark) if self.region(inputs) == _UNNAMED else None

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(inputs["bucket"])

    def _put_tags(self, call: Call, inputs: Properties, more: Properties) -> None:
        tags = {**all_tags(self._session().default_tags, inputs), **more}
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        path = fill_template(BUCKET_ARN, self.template_values(inputs["bucket"], inputs))
        self.write(call, inputs, "s3control:TagResource", {**path, "Tags": pairs})

    def _find_same_name(self, call: Call, inputs: Properties, mark: str) -> Any:
        """The bucket of a killed attempt: it has the attempt's mark, or is empty and has no tags yet."""
        model = self._get(call, inputs["bucket"], inputs)
        tags = {} if model is None else (self.live(model).get("tags") or {})
        if model is None or (tags and tags.get(ATTEMPT_TAG) != mark):
            return None
        empty = not self.write(call, inputs, "ListObjectVersions", {"Bucket": inputs["bucket"], "MaxKeys": 1}).get(
            "Versions"
        )
        if tags.get(ATTEMPT_TAG) != mark:
            if not empty:
                return None
            self._put_tags(call, inputs, {ATTEMPT_TAG: mark})
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
            # A list of deletions is XML, which cannot hold every name.
            for one in (one for one in objects if not fits_xml(one["Key"])):
                self.write(call, inputs, "DeleteObject", {"Bucket": id, **one})
            if rest := [one for one in objects if fits_xml(one["Key"])]:
                self.write(call, inputs, "DeleteObjects", {"Bucket": id, "Delete": {"Objects": rest, "Quiet": True}})
            gone += len(objects)
            call.report.status(f"{gone} objects removed")


class VersioningResource(AwsResource):
    """Versioning of a bucket. It cannot be turned off again, only suspended."""

    def _delete_and_wait(self, call: Call, id: str, known: Properties) -> None:  # noqa: A002
        self._while_in_use(call, lambda: self._delete(id, known))


_CONTENTS = ("content", "contentBase64", "source")
_OTHER = frozenset({"forceDestroy", "tags", "tagsAll"})


class ObjectResource(AwsResource):
    """An object. Any change except one of tags puts it again."""

    def validate_inputs(self, inputs: Properties) -> list[InputFailure]:
        failures, given = super().validate_inputs(inputs), [key for key in _CONTENTS if inputs.get(key) is not None]
        if len(given) > 1:
            failures.append(InputFailure(given[1], f"An object has either this or `{given[0]}`."))
        return failures

    def check(self, call: Call, old: Properties, new: Properties) -> Any:
        return super().check(call, old, {**({} if new.get("key") is not None else {"key": call.name}), **new})

    def id_of(self, model: Any, inputs: Properties) -> str:
        return f"{inputs['bucket']}/{inputs['key']}"

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        outputs = super().preview(inputs, old_outputs)
        same = old_outputs is not None and all(
            canonical_json(value) == canonical_json(old_outputs.get(key))
            for key, value in inputs.items()
            if key not in _OTHER
        )
        if not same:
            outputs["versionId"] = UNKNOWN
            outputs |= {} if inputs.get("etag") else {"etag": UNKNOWN}
        return outputs

    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        outputs = super().outputs_of(model, inputs)
        live, given = str(model.get("ETag", "")).strip('"'), str(inputs.get("etag") or "")
        # The program's ETag, if the object has it, or if the object's ETag does not depend on its content.
        holds = given and (live == given or "-" in live or model.get("SSEKMSKeyId"))
        outputs["etag"] = given if holds else live
        return outputs

    def _create(self, call: Call, inputs: Properties, mark: str) -> Any:
        made = self.creation(ParameterBuilder(self.row.renamed), inputs)
        tags = {**all_tags(self._session().default_tags, inputs), ATTEMPT_TAG: mark}
        self.write(call, inputs, "PutObject", {**made, "Body": content_of(inputs), "Tagging": urlencode(tags)})
        return self._get(call, "", inputs)

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        if changed.keys() - _OTHER:
            self._create(call, new, "")
        if {"tags", "tagsAll"} & changed.keys():
            tags = all_tags(self._session().default_tags, new)
            pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
            path = {"Bucket": new["bucket"], "Key": new["key"]}
            self.write(call, new, "PutObjectTagging", {**path, "Tagging": {"TagSet": pairs}})

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        return model

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        """Deletes all versions, as the real provider does."""
        if not inputs.get("versionId"):
            return super()._delete(id, inputs)
        path = {"Bucket": inputs["bucket"], "Key": inputs["key"]}
        page = self.ask(inputs, "ListObjectVersions", {"Bucket": path["Bucket"], "Prefix": path["Key"]})
        for one in (*(page.get("Versions") or ()), *(page.get("DeleteMarkers") or ())):
            if one["Key"] == path["Key"]:
                self.ask(inputs, "DeleteObject", {**path, "VersionId": one["VersionId"]})
        return None


def content_of(inputs: Properties) -> bytes:
    if inputs.get("contentBase64") is not None:
        return base64.b64decode(inputs["contentBase64"])
    source = inputs.get("source")
    if source is None:
        return str(inputs.get("content") or "").encode()
    if isinstance(source, Mapping) and isinstance(source.get("text"), str) and source["text"]:
        return str(source["text"]).encode()
    path = Path(str(source.get("path") if isinstance(source, Mapping) else source))
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProviderError(
            f"The object's `source` cannot be read: {error}", "Give a file (`FileAsset`) or a text (`StringAsset`)."
        ) from None
