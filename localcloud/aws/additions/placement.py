# SPDX-License-Identifier: Apache-2.0
"""Placement groups, which moto does not have."""

from __future__ import annotations

import secrets
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions.outside import Operations, apply_filters, ec2_error, own_table

_GROUP_FILTERS = {"group-name": "GroupName", "group-arn": "GroupArn", "state": "State", "strategy": "Strategy"}
_STRATEGIES = ("cluster", "partition", "spread")


class PlacementGroups(Operations):
    """Operations of EC2."""

    def create_placement_group(self) -> Any:
        from moto.core.responses import ActionResult

        name, strategy = self._get_param("GroupName"), self._get_param("Strategy", "cluster")
        groups = own_table(self.ec2_backend, "placement_groups")
        if not name:
            raise ec2_error("MissingParameter", "The request must contain the parameter groupName")
        if strategy not in _STRATEGIES:
            raise ec2_error("InvalidParameterValue", f"Invalid value '{strategy}' for strategy.")
        if name in groups:
            raise ec2_error("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
        self.error_on_dryrun()
        identifier = f"pg-{secrets.token_hex(8)}0"
        groups[name] = {
            "GroupName": name, "State": "available", "Strategy": strategy, "GroupId": identifier,
            "GroupArn": f"arn:aws:ec2:{self.region}:{ACCOUNT}:placement-group/{name}",
            **({"PartitionCount": self._get_int_param("PartitionCount", 7)} if strategy == "partition" else {}),
        }  # fmt: skip
        if tags := self._parse_tag_specification().get("placement-group"):
            self.ec2_backend.create_tags([identifier], tags)
        return ActionResult({"PlacementGroup": _shown_group(self.ec2_backend, groups[name])})

    def describe_placement_groups(self) -> Any:
        from moto.core.responses import ActionResult

        groups = own_table(self.ec2_backend, "placement_groups")
        names, ids = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
        for name in names:
            find_group(self.ec2_backend, name)
        wanted = self._filters_from_querystring()
        rows = [
            _shown_group(self.ec2_backend, row)
            for row in groups.values()
            if (not names or row["GroupName"] in names) and (not ids or row["GroupId"] in ids)
        ]
        return ActionResult({"PlacementGroups": apply_filters(rows, wanted, _GROUP_FILTERS)})

    def delete_placement_group(self) -> Any:
        from moto.core.responses import EmptyResult

        name = self._get_param("GroupName")
        row = find_group(self.ec2_backend, name)
        living = [one for one in self.ec2_backend.all_instances() if one.state != "terminated"]
        if any(one.placement.group_name == name for one in living):
            raise ec2_error("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use.")
        self.error_on_dryrun()
        self.ec2_backend.tags.pop(row["GroupId"], None)
        del own_table(self.ec2_backend, "placement_groups")[name]
        return EmptyResult()


def find_group(backend: Any, name: str) -> dict[str, Any]:
    row: dict[str, Any] | None = own_table(backend, "placement_groups").get(name)
    if row is None:
        raise ec2_error("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return row


def group_by_id(backend: Any, identifier: str) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = own_table(backend, "placement_groups")
    for row in rows.values():
        if row["GroupId"] == identifier:
            return row
    raise ec2_error("InvalidPlacementGroupId.NotFound", f"The Placement Group '{identifier}' does not exist.")


def _shown_group(backend: Any, row: dict[str, Any]) -> dict[str, Any]:
    tags = backend.describe_tags(filters={"resource-id": [row["GroupId"]]})
    return {**row, "Tags": [{"Key": tag["key"], "Value": tag["value"]} for tag in tags]}
