# SPDX-License-Identifier: Apache-2.0
"""Placement groups, and launch templates, whose changes are versions."""

from typing import Any

from components.platform.calls import Call
from components.platform.values import UNKNOWN, Properties, canonical
from localcloud.aws.plugin.behaviours.names import NamedResource
from localcloud.aws.plugin.shapes import Judged
from localcloud.aws.plugin.table import AwsResource
from localcloud.aws.plugin.types.machines import TEMPLATE_DATA

_DATA = frozenset(TEMPLATE_DATA.split())
_OWN_KIND = "launch-template"
# Inputs whose change makes a new version, and inputs that choose the default version.
_VERSION = _DATA | {"description"}
_CHOICE = frozenset({"defaultVersion", "updateDefaultVersion"})


class PlacementGroupResource(NamedResource):
    """A placement group. Calls identify it by its name."""


class LaunchTemplateResource(AwsResource):
    """A launch template. Each change makes a new version."""

    def live(self, model: Properties) -> Properties:
        live = super().live(model)
        described = {"description": model["description"]} if model.get("description") else {}
        # The local AWS shows a template's own tags among those that it gives to machines.
        tags = [one for one in live.get("tagSpecifications") or () if one.get("resourceType") != _OWN_KIND]
        return {**live, **described, "tagSpecifications": tags or None}

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        outputs = super().preview(inputs, old_outputs)
        if old_outputs is None:
            return {**outputs, "latestVersion": 1, "defaultVersion": 1}
        if any(canonical(inputs.get(key)) != canonical(old_outputs.get(key)) for key in _VERSION if key in inputs):
            outputs["latestVersion"] = UNKNOWN
            outputs |= {"defaultVersion": UNKNOWN} if inputs.get("updateDefaultVersion") else {}
        return outputs

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        version = new.get("defaultVersion")
        if changed.keys() & _VERSION:
            made = self._another_version(call, id, new)
            version = made if new.get("updateDefaultVersion") else version
        elif new.get("updateDefaultVersion") and "updateDefaultVersion" in changed:
            version = (self._get(call, id, new) or {}).get("LatestVersionNumber")
        if version is not None and changed.keys() & (_VERSION | _CHOICE):
            chosen = {"LaunchTemplateId": id, "DefaultVersion": str(version)}
            self.write(call, new, "ModifyLaunchTemplate", chosen)
        super()._update(call, id, {key: value for key, value in changed.items() if key not in _VERSION}, new)

    def _another_version(self, call: Call, id: str, new: Properties) -> Any:  # noqa: A002
        made = self.creation(Judged(self.row.renamed), new)
        wanted = {"LaunchTemplateId": id, "LaunchTemplateData": made["LaunchTemplateData"]}
        wanted |= {"VersionDescription": new.get("description")}
        answer = self.write(call, new, "CreateLaunchTemplateVersion", wanted)
        return answer["LaunchTemplateVersion"]["VersionNumber"]
