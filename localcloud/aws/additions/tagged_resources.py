# SPDX-License-Identifier: Apache-2.0
"""Resources that AWS's GetResources returns by their tags, and moto's leaves out: most of EC2's types, and
repositories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localcloud.aws.additions.outside import own_table

# AWS's names of types in ARNs, where moto's differ.
_NAMES = {"vpc-elastic-ip": "elastic-ip", "nat-gateway": "natgateway"}
# Types that moto's GetResources returns itself.
_BY_MOTO = frozenset({
    "customer-gateway", "flow-logs", "image", "instance", "internet-gateway", "managed-prefix-lists", "natgateway",
    "network-interface", "route-table", "security-group", "snapshot", "spot-instance-request", "subnet",
    "traffic-mirror-session", "transit-gateway", "transit-gateway-attachment", "volume", "vpc",
    "vpc-peering-connection", "vpn-connection",
})  # fmt: skip


class _MoreTagged:
    """In the form of moto's backends that take part in GetResources."""

    def __init__(self, account: str, region: str) -> None:
        self._account, self._region = account, region

    def owns_arn(self, arn: str) -> bool:
        return False

    def iter_tagged_resources(self) -> Iterator[Any]:
        from moto.core.resource_tagging import TaggedResource
        from moto.ec2.models import ec2_backends
        from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE
        from moto.ecr.models import ecr_backends

        # As moto does: a region that nobody has used stays without a backend.
        if self._region not in ec2_backends[self._account]:
            return
        ec2 = ec2_backends[self._account][self._region]
        names = {row["GroupId"]: name for name, row in own_table(ec2, "placement_groups").items()}
        for identifier, tags in list(ec2.tags.items()):
            kind = EC2_PREFIX_TO_RESOURCE.get(identifier.rpartition("-")[0], "")
            kind = _NAMES.get(kind, kind)
            if kind and kind not in _BY_MOTO and tags:
                name = names.get(identifier, identifier)
                arn = f"arn:aws:ec2:{self._region}:{self._account}:{kind}/{name}"
                yield TaggedResource(arn, dict(tags), f"ec2:{kind}")
        ecr = ecr_backends[self._account][self._region]
        for repository in list(ecr.repositories.values()):
            tags = ecr.tagger.get_tag_dict_for_resource(repository.arn)
            yield TaggedResource(repository.arn, tags, "ecr:repository")


def install_tagged_resources(models: Any) -> None:
    """Changes moto's module of the tagging API. Called once in a process."""
    by_moto = models.iter_taggable_backends

    def every_backend(account: str, region: str) -> Iterator[Any]:
        yield from by_moto(account, region)
        yield _MoreTagged(account, region)

    models.iter_taggable_backends = every_backend
