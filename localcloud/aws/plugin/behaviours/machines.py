# SPDX-License-Identifier: Apache-2.0
"""Instances with their disks, and launch templates, whose changes are versions."""

import base64
import time
from collections.abc import Mapping
from typing import Any

from components.aws.types.machines import TEMPLATE_DATA
from components.platform.calls import Call, InputFailure, ProviderError
from components.platform.values import UNKNOWN, Properties, canonical_json
from localcloud.aws.plugin.session import visible_tags
from localcloud.aws.plugin.shapes import ParameterBuilder
from localcloud.aws.plugin.table import AwsResource

_USER_DATA = ("userData", "userDataBase64")
# Inputs that can be changed only while an instance is stopped.
_STOPPED = {"instanceType": "InstanceType", "userData": "UserData", "userDataBase64": "UserData"}
_STATES = {"StopInstances": "stopped", "StartInstances": "running"}
_SECONDS = 600.0


class InstanceResource(AwsResource):
    """An instance."""

    def replaced_too(self, old: Properties, new: Properties) -> frozenset[str]:
        return frozenset(_USER_DATA) if new.get("userDataReplaceOnChange") else frozenset()

    def validate_inputs(self, inputs: Properties) -> list[InputFailure]:
        failures = super().validate_inputs(inputs)
        if inputs.get("launchTemplate") is None:
            lacking = [key for key in ("ami", "instanceType") if inputs.get(key) is None]
            failures += [InputFailure(key, "An instance without a launch template needs this.") for key in lacking]
        return failures

    def creation(self, builder: ParameterBuilder, inputs: Properties) -> Properties:
        made = super().creation(builder, inputs)
        disks = self._disks(builder, inputs)
        if disks:
            made["BlockDeviceMappings"] = disks
        encoded = inputs.get("userDataBase64")
        if isinstance(encoded, str):  # botocore encodes it again
            made["UserData"] = base64.b64decode(encoded).decode()
        if inputs.get("associatePublicIpAddress") is not None:
            made = self._with_public_address(made, inputs["associatePublicIpAddress"])
        return made

    def _disks(self, builder: ParameterBuilder, inputs: Properties) -> list[Any]:
        shape = self.shape("RunInstances").members["BlockDeviceMappings"].member
        root = inputs.get("rootBlockDevice")
        listed = [("rootBlockDevice", {"deviceName": "/dev/sda1", **root})] if isinstance(root, Mapping) else []
        more = inputs.get("ebsBlockDevices")
        listed += [(f"ebsBlockDevices[{n}]", one) for n, one in enumerate(more if isinstance(more, list) else [])]
        made = []
        for path, disk in listed:
            own = {key: value for key, value in disk.items() if key not in ("deviceName", "tags", "tagsAll")}
            ebs = builder.parameters(shape.members["Ebs"], own, path)
            made.append({"DeviceName": disk.get("deviceName"), "Ebs": ebs})
        return made

    def _with_public_address(self, made: Properties, wanted: Any) -> Properties:
        """Moves the choice to a network interface, because the API has it only there. Then the subnet, the groups and
        the address must be there, too."""
        moved = {"SubnetId": "SubnetId", "SecurityGroupIds": "Groups", "PrivateIpAddress": "PrivateIpAddress"}
        interface = {name: made.pop(key) for key, name in moved.items() if made.get(key) is not None}
        first = {"DeviceIndex": 0, "AssociatePublicIpAddress": wanted, **interface}
        return {**made, "NetworkInterfaces": [first, *made.get("NetworkInterfaces", [])]}

    def live(self, model: Properties) -> Properties:
        live = super().live(model)
        attached = [one.get("Attachment") or {} for one in model.get("NetworkInterfaces") or ()]
        live.pop("networkInterfaces", None)
        template = {item["Key"]: item["Value"] for item in model.get("Tags") or ()}
        profile = (model.get("IamInstanceProfile") or {}).get("Arn")
        live["iamInstanceProfile"] = profile.rpartition("/")[2] if profile else None
        names = {"id": "aws:ec2launchtemplate:id", "version": "aws:ec2launchtemplate:version"}
        started = {key: template[tag] for key, tag in names.items() if tag in template}
        live |= {"launchTemplate": started} if started and attached else {}
        return live

    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        outputs = super().outputs_of(model, inputs)
        # These keep the values of the inputs, because the API does not return them, or returns ids in place of names.
        for key in ("launchTemplate", *_USER_DATA, "securityGroups"):
            if inputs or key != "launchTemplate":  # an import has no inputs, so the template comes from AWS's tags
                outputs.pop(key, None)
            outputs |= {key: inputs[key]} if inputs.get(key) is not None else {}
        return outputs

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        complete = super().after_create(call, id, model, inputs)
        if inputs.get("volumeTags"):
            self._tag_volumes(call, complete, inputs)
            complete["volumeTags"] = inputs["volumeTags"]
        return complete

    def _tag_volumes(self, call: Call, model: Properties, inputs: Properties) -> None:
        mapped = model.get("BlockDeviceMappings") or ()
        volumes = [one["Ebs"]["VolumeId"] for one in mapped if (one.get("Ebs") or {}).get("VolumeId")]
        if not volumes:
            return
        wanted, now = inputs.get("volumeTags") or {}, self._volume_tags(call, volumes, inputs)
        if gone := sorted(now.keys() - wanted.keys()):
            self.write(call, inputs, "DeleteTags", {"Resources": volumes, "Tags": [{"Key": key} for key in gone]})
        if wanted:
            tags = [{"Key": key, "Value": value} for key, value in wanted.items()]
            self.write(call, inputs, "CreateTags", {"Resources": volumes, "Tags": tags})

    def _volume_tags(self, call: Call, volumes: list[str], inputs: Properties) -> dict[str, str]:
        listed = self.write(call, inputs, "DescribeVolumes", {"VolumeIds": volumes})["Volumes"]
        return visible_tags({tag["Key"]: tag["Value"] for volume in listed for tag in volume.get("Tags") or ()})

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        model = super()._get(call, id, inputs)
        if model is not None and inputs.get("volumeTags"):
            mapped = [one.get("Ebs") or {} for one in model.get("BlockDeviceMappings") or ()]
            volumes = [one["VolumeId"] for one in mapped if one.get("VolumeId")]
            model["volumeTags"] = self._volume_tags(call, volumes, inputs) if volumes else None
        return model

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        if changed.keys() & _STOPPED.keys():
            self._change_while_stopped(call, id, changed, new)
        if "volumeTags" in changed:
            self._tag_volumes(call, self._get(call, id, new) or {}, new)
        left = {key: value for key, value in changed.items() if key not in _STOPPED}
        if left.pop("monitoring", "") is False or ("monitoring" in changed and not new.get("monitoring")):
            self.write(call, new, "UnmonitorInstances", {"InstanceIds": [id]})
            left.pop("monitoring", None)
        elif changed.get("monitoring"):
            self.write(call, new, "MonitorInstances", {"InstanceIds": [id]})
        super()._update(call, id, left, new)

    def _change_while_stopped(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        was = self.state_of(self._get(call, id, new) or {})
        self._reach(call, id, "StopInstances", new)
        for key in _STOPPED.keys() & changed.keys():
            if (value := new.get(key)) is not None:
                if key == "userDataBase64":  # user data must be bytes, which botocore encodes
                    value = base64.b64decode(value)
                elif key == "userData":
                    value = str(value).encode()
                wanted = {"InstanceId": id, _STOPPED[key]: {"Value": value}}
                self.write(call, new, "ModifyInstanceAttribute", wanted)
        if was == "running":
            self._reach(call, id, "StartInstances", new)

    def _reach(self, call: Call, id: str, operation: str, inputs: Properties) -> None:  # noqa: A002
        """Stops or starts the instance, and waits for its new state."""
        self.write(call, inputs, operation, {"InstanceIds": [id]})
        deadline, pause = call.deadline(_SECONDS), 0.05
        while (state := self.state_of(self._get(call, id, inputs) or {})) != _STATES[operation]:
            if time.monotonic() > deadline:
                raise ProviderError(f"{call.name} is {state}, not {_STATES[operation]}.", "Look at it in the console.")
            call.report.status(f"{state}, waiting until {_STATES[operation]}")
            call.stop.wait(pause)
            pause = min(pause * 1.5, 5.0)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        """First removes the termination protection, and cancels the spot request, which would start the instance
        again."""
        given = {**outputs, **inputs}
        if self._get(call, id, given) is not None:
            unprotected = {"InstanceId": id, "DisableApiTermination": {"Value": False}}
            self.write(call, given, "ModifyInstanceAttribute", unprotected)
            if request := outputs.get("spotInstanceRequestId"):
                self.write(call, given, "CancelSpotInstanceRequests", {"SpotInstanceRequestIds": [request]})
        super().delete(call, id, outputs, inputs)

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        outputs = super().preview(inputs, old_outputs)
        if old_outputs is not None and inputs.get("instanceType") != old_outputs.get("instanceType"):
            outputs |= {"publicIp": UNKNOWN, "publicDns": UNKNOWN}  # a stopped instance loses its address
        return outputs


_DATA = frozenset(TEMPLATE_DATA.split())
_OWN_KIND = "launch-template"
# Inputs whose change creates a version, and inputs that choose the default version.
_VERSION = _DATA | {"description"}
_CHOICE = frozenset({"defaultVersion", "updateDefaultVersion"})


class LaunchTemplateResource(AwsResource):
    """A launch template. Each change creates a version."""

    def live(self, model: Properties) -> Properties:
        live = super().live(model)
        described = {"description": model["description"]} if model.get("description") else {}
        # The local AWS shows the template's own tags among those for instances.
        tags = [one for one in live.get("tagSpecifications") or () if one.get("resourceType") != _OWN_KIND]
        return {**live, **described, "tagSpecifications": tags or None}

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        outputs = super().preview(inputs, old_outputs)
        if old_outputs is None:
            return {**outputs, "latestVersion": 1, "defaultVersion": 1}
        if any(
            canonical_json(inputs.get(key)) != canonical_json(old_outputs.get(key)) for key in _VERSION if key in inputs
        ):
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
        made = self.creation(ParameterBuilder(self.row.renamed), new)
        wanted = {"LaunchTemplateId": id, "LaunchTemplateData": made["LaunchTemplateData"]}
        wanted |= {"VersionDescription": new.get("description")}
        answer = self.write(call, new, "CreateLaunchTemplateVersion", wanted)
        return answer["LaunchTemplateVersion"]["VersionNumber"]
