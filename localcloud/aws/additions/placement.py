# SPDX-License-Identifier: Apache-2.0
"""Placement groups, which moto does not have."""

from __future__ import annotations

import secrets
from typing import Any

from localcloud.aws.account import ACCOUNT
from localcloud.aws.additions.outside import Operations, action_result, apply_filters, own_table, shown_with_tags
from localcloud.aws.aws_errors import aws_refusal

_GROUP_FILTERS = {"group-name": "GroupName", "group-arn": "GroupArn", "state": "State", "strategy": "Strategy"}
_STRATEGIES = ("cluster", "partition", "spread")


class PlacementGroups(Operations):
    """Operations of EC2."""

    def create_placement_group(self) -> Any:
        name, strategy = self._get_param("GroupName"), self._get_param("Strategy", "cluster")
        groups = own_table(self.ec2_backend, "placement_groups")
        if not name:
            raise aws_refusal("placement unnamed")
        if strategy not in _STRATEGIES:
            raise aws_refusal("placement strategy", strategy=strategy)
        if name in groups:
            raise aws_refusal("placement twice", name=name)
        self.error_on_dryrun()
        identifier = f"pg-{secrets.token_hex(8)}0"
        groups[name] = {
            "GroupName": name, "State": "available", "Strategy": strategy, "GroupId": identifier,
            "GroupArn": f"arn:aws:ec2:{self.region}:{ACCOUNT}:placement-group/{name}",
            **({"PartitionCount": self._get_int_param("PartitionCount", 7)} if strategy == "partition" else {}),
        }  # fmt: skip
        self._tag_as_asked("placement-group", identifier)
        return action_result({"PlacementGroup": shown_with_tags(self.ec2_backend, groups[name], identifier)})

    def describe_placement_groups(self) -> Any:
        groups = own_table(self.ec2_backend, "placement_groups")
        names, ids = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
        for name in names:
            find_group(self.ec2_backend, name)
        wanted = self._filters_from_querystring()
        rows = [
            shown_with_tags(self.ec2_backend, row, row["GroupId"])
            for row in groups.values()
            if (not names or row["GroupName"] in names) and (not ids or row["GroupId"] in ids)
        ]
        return action_result({"PlacementGroups": apply_filters(rows, wanted, _GROUP_FILTERS)})

    def delete_placement_group(self) -> Any:
        name = self._get_param("GroupName")
        row = find_group(self.ec2_backend, name)
        living = [one for one in self.ec2_backend.all_instances() if one.state != "terminated"]
        if any(one.placement.group_name == name for one in living):
            raise aws_refusal("placement in use", name=name)
        self.error_on_dryrun()
        self.ec2_backend.tags.pop(row["GroupId"], None)
        del own_table(self.ec2_backend, "placement_groups")[name]
        return action_result(None)


def find_group(backend: Any, name: str) -> dict[str, Any]:
    row: dict[str, Any] | None = own_table(backend, "placement_groups").get(name)
    if row is None:
        raise aws_refusal("placement unknown", name=name)
    return row


def group_by_id(backend: Any, identifier: str) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = own_table(backend, "placement_groups")
    for row in rows.values():
        if row["GroupId"] == identifier:
            return row
    raise aws_refusal("placement id", group=identifier)
