# SPDX-License-Identifier: Apache-2.0
"""Object Storage: names identify buckets and objects."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from components.oci.client.calls import call_oci
from components.platform.calls import Call, ProviderError
from components.platform.values import Diff, Properties
from localcloud.oci.plugin.table import OciResource
from localcloud.plugins.engine import unchangeable_error


class BucketResource(OciResource):
    """A bucket. Namespace and name identify it. It has no lifecycle state and takes no retry token."""

    def id_of(self, model: Any, inputs: Properties) -> str:
        return f"n/{model.namespace}/b/{model.name}"

    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        return {**super().outputs_of(model, inputs), "id": self.id_of(model, inputs)}

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        parts = id.split("/", 3)
        return {"namespace": parts[1], "name": parts[3]} if len(parts) == 4 else {}

    def call_path(self, id: str, inputs: Properties) -> list[str]:  # noqa: A002
        parts = self.parse_id(id)
        return [parts["namespace"], parts["name"]]

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        try:
            return self.client.create_bucket(inputs["namespace"], details).data
        except Exception as error:
            if getattr(error, "code", None) != "BucketAlreadyExists" or call.anew:
                raise
            existing = self._interrupted_create(inputs)
            if existing is None:
                raise
            return existing

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        model = super()._get(call, id, inputs)
        if model is not None:  # the real provider reads retention rules, even if there can be none
            path = self.call_path(id, inputs)
            call_oci(call, f"Read the retention rules of {call.name}", lambda: self.client.list_retention_rules(*path))
        return model

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        if self._get(call, id, inputs) is not None:
            self._while_in_use(call, lambda: self._delete(id, inputs))

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> Any:  # noqa: A002
        if changed.get("versioning") == "Disabled":
            raise ProviderError(
                f"{call.name}: OCI can suspend a bucket's versioning, but not turn it off.",
                "Write `trainyard:bucket: { versioning: suspended }`. Existing versions stay until they are deleted.",
            )
        super()._update(call, id, changed, new)
        return self._get(call, id, new)

    def _id_of_name(self, call: Call, inputs: Properties) -> str:
        return f"n/{inputs['namespace']}/b/{inputs['name']}"

    def _interrupted_create(self, inputs: Properties) -> Any:
        """The bucket of an earlier create that was killed: in this compartment, with the same tags, and empty.

        A bucket with content may belong to others. It counts as a taken name, as in OCI."""
        try:
            bucket = self.client.get_bucket(inputs["namespace"], inputs["name"]).data
        except Exception as error:
            if getattr(error, "status", None) == 404:
                return None
            raise
        tags = inputs.get("freeformTags") or {}
        same = bucket.compartment_id == inputs["compartmentId"] and tags and (bucket.freeform_tags or {}) == tags
        return bucket if same and not self._has_content(inputs) else None

    def _has_content(self, inputs: Properties) -> bool:
        listed = self.client.list_object_versions(inputs["namespace"], inputs["name"], limit=1)
        return bool(listed.data.items)


class ObjectResource(OciResource):
    """An object. Its content comes from a text or a file; all other inputs are headers."""

    _HEADERS = (
        "cacheControl",
        "contentDisposition",
        "contentEncoding",
        "contentLanguage",
        "contentType",
        "storageTier",
    )
    _INPUTS = (
        *("bucket", "namespace", "object", "content", "source", "metadata", "contentMd5", "deleteAllObjectVersions"),
        *_HEADERS,
    )

    def inputs_of_api(self) -> frozenset[str]:
        return frozenset(self._INPUTS)

    def outputs_of_api(self) -> frozenset[str]:
        return frozenset({"contentLength", "contentMd5", "contentType", "state", "storageTier", "versionId"})

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        parts = id.split("/", 5)
        return {"namespace": parts[1], "bucket": parts[3], "object": parts[5]} if len(parts) == 6 else {}

    def call_path(self, id: str, inputs: Properties) -> list[str]:  # noqa: A002
        parts = self.parse_id(id)
        return [parts["namespace"], parts["bucket"], parts["object"]]

    def id_of(self, model: Any, inputs: Properties) -> str:
        return f"n/{inputs['namespace']}/b/{inputs['bucket']}/o/{inputs['object']}"

    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        return {**inputs, **vars(model)}

    def _details(self, kind: str, inputs: Properties) -> Any:
        if inputs.get("content") is not None and inputs.get("source"):
            raise ProviderError("An object has either `content` or `source`, not both.", "Remove one of them.")
        if not inputs.get("source"):
            return (inputs.get("content") or "").encode()
        try:
            return Path(inputs["source"]).read_bytes()
        except OSError as error:
            raise ProviderError(f"The object's `source` cannot be read: {error}", "Correct the path.") from None

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        """Deletes before it replaces: with the same name, deleting the old object later would delete the new one."""
        same = all(old.get(key) == new.get(key) for key in ("namespace", "bucket", "object"))
        return replace(super().diff(call, old, old_outputs, new), delete_before_replace=same)

    def _exists(self, inputs: Properties) -> bool:
        return self._read([inputs["namespace"], inputs["bucket"], inputs["object"]], whole=False) is not None

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        options = {key_to_option(key): inputs[key] for key in self._HEADERS if inputs.get(key)}
        if inputs.get("metadata"):
            options["opc_meta"] = dict(inputs["metadata"])
        self.client.put_object(inputs["namespace"], inputs["bucket"], inputs["object"], details, **options)
        return SimpleNamespace()

    def _look(self, path: list[str], whole: bool) -> Any:
        """Reads the object's headers. Like the real provider, reads an object with `content` as a whole."""
        answer = (self.client.get_object if whole else self.client.head_object)(*path)
        headers = answer.headers
        if whole:
            answer.data.close()
        shown = {
            "contentLength": headers.get("content-length"),
            "contentMd5": headers.get("content-md5"),
            "contentType": headers.get("content-type"),
            "storageTier": headers.get("storage-tier"),
            "versionId": headers.get("version-id"),
        }
        return SimpleNamespace(**{key: value for key, value in shown.items() if value}, state="AVAILABLE")

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        path, whole = self.call_path(id, inputs), bool(inputs.get("content"))
        return call_oci(call, f"Read {call.name}", lambda: self._read(path, whole))

    def _read(self, path: list[str], whole: bool) -> Any:
        try:
            return self._look(path, whole)
        except Exception as error:
            if getattr(error, "status", None) == 404:
                return None
            raise

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        # `deleteAllObjectVersions` is the provider's own. Every other change in place is refused.
        if others := sorted(changed.keys() - {"deleteAllObjectVersions"}):
            raise unchangeable_error(call, others)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        self._while_in_use(call, lambda: self._delete(id, inputs))

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        namespace, bucket, name = self.call_path(id, inputs)
        if not inputs.get("deleteAllObjectVersions"):
            self.client.delete_object(namespace, bucket, name)
            return
        for version in self._versions(namespace, bucket, name):
            self.client.delete_object(namespace, bucket, version.name, version_id=version.version_id)

    def _versions(self, namespace: str, bucket: str, prefix: str) -> list[Any]:
        """The versions that the real provider deletes: those of all objects whose names begin with this name."""
        versions, page = [], {"prefix": prefix}
        while True:
            answer = self.client.list_object_versions(namespace, bucket, **page)
            versions += answer.data.items
            if not answer.headers.get("opc-next-page"):
                return versions
            page["page"] = answer.headers["opc-next-page"]


def key_to_option(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
