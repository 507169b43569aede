# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for existing resources that a stack file names. They are made once on the local cloud, and removed with the
last stack."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from types import MappingProxyType
from typing import Any, TypeVar

from components.oci.client.buckets import empty_and_delete
from components.oci.client.calls import ask_oci, make_once, unless_gone
from components.oci.client.session import DEPLOYER, sdk_module, session_of
from components.oci.local import stand_in_network as network_of_others
from components.oci.plan import OciNetworkPlan
from components.oci.stack import is_ocid
from components.oci.types import SERVED_TYPES
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.calls import LocalCloud, ProviderError, Tell, call_of

RECORD = "stand-ins.json"
# Only resources with this tag are removed: users may make resources with the same names.
MARK = {"trainyard-stands-in": "yes"}
_SECONDS = 120.0
# The name of a stand-in that the file does not name, but that has to contain another one.
OTHERS = "of others"
AGAIN = "Run the same command again; `trainyard cloud log` shows the calls."

T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """`within`: the kind that has to exist first. The file does not say which one, so any of that kind will do."""

    row: OciResourceType
    fields: Mapping[str, Any]
    within: Mapping[str, str]
    # Whether only a work request names the new resource.
    work_request: bool


def stand_in_kind(
    token: str,
    fields: Mapping[str, Any] = MappingProxyType({}),
    within: Mapping[str, str] = MappingProxyType({}),
    work_request: bool = False,
) -> tuple[str, Kind]:
    row = SERVED_TYPES[token]
    return row.ocid_kind, Kind(row, fields, within, work_request)


# In the spelling of the API. A file that names an existing target does not say which machines it has.
_CLUSTER = {
    "computeType": "MANAGED_COMPUTE_CLUSTER",
    "instanceConfiguration": {"instanceShape": "VM.Standard.E4.Flex"},
    "scalingPolicy": {"policyType": "FIXED_SIZE", "instanceCount": 1},
}
# By the type in an OCID. Keys, vaults and their secrets are left out: the local cloud does not read them.
KINDS: Mapping[str, Kind] = dict((
    stand_in_kind("oci:Core/vcn:Vcn"),
    stand_in_kind("oci:Core/serviceGateway:ServiceGateway", within={"vcn_id": "vcn"}),
    stand_in_kind("oci:Core/routeTable:RouteTable", within={"vcn_id": "vcn"}),
    stand_in_kind("oci:Core/securityList:SecurityList", within={"vcn_id": "vcn"}),
    stand_in_kind(
        "oci:Core/subnet:Subnet",
        {"prohibit_public_ip_on_vnic": True},
        {"vcn_id": "vcn", "route_table_id": "routetable", "security_list_ids": "securitylist"},
    ),
    stand_in_kind("oci:Logging/logGroup:LogGroup", work_request=True),
    stand_in_kind("oci:Logging/log:Log", {"log_type": "CUSTOM"}, {"log_group_id": "loggroup"}, work_request=True),
    stand_in_kind("oci:DataScience/project:Project"),
    stand_in_kind("oci:DataScience/computeTarget:ComputeTarget", {"compute_configuration_details": _CLUSTER}),
))  # fmt: skip


class StandIns:
    """The stand-ins of one local cloud, by the OCID or name in stack files."""

    def __init__(self, cloud: LocalCloud, tell: Tell, network: OciNetworkPlan | None = None) -> None:
        """`network`: the planned network. A stand-in for one gets its addresses and rules."""
        self._cloud = cloud
        self._tell = tell
        self._network = network
        self._file = cloud.home / RECORD
        self._made: dict[str, str] = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._session = session_of(cloud, DEPLOYER)
        # The last resource of each kind in the file: the next one may be in it.
        self._met: dict[str, str] = {}

    def of(self, ocid: str) -> str | None:
        """The OCID in the local cloud for this resource. None if it needs no stand-in."""
        kind = ocid.split(".")[1] if ocid.count(".") >= 4 else ""
        if kind in ("tenancy", "compartment"):
            return self._cloud.tenancy if kind == "tenancy" else self._cloud.compartment
        if kind not in KINDS:
            return None
        if there := next((item for item in self._there(kind) if item.id == ocid), None):
            self._meet(kind, there)
            return ocid
        return self._one(kind, ocid)

    def named(self, kind: str, name: str, group: str = "") -> bool:
        """Makes a resource with this name, unless one exists already. Returns whether it had to be made."""
        if there := next((item for item in self._there(kind, group) if item.display_name == name), None):
            self._meet(kind, there)
        else:
            self._one(kind, name)
        return f"{kind} {name}" in self._made

    def _there(self, kind: str, group: str = "") -> Iterator[Any]:
        """The existing resources of a kind: logs of a group, all others of the compartment."""
        if kind == "log":
            for one in self._listed("loggroup", self._cloud.compartment):
                if group in ("", one.id, one.display_name):
                    yield from self._listed(kind, one.id)
        else:
            yield from self._listed(kind, self._cloud.compartment)

    def _listed(self, kind: str, place: str) -> list[Any]:
        row = KINDS[kind].row
        list_all = getattr(self._session.client(row.service), row.list_operation)
        return list(ask_oci(self._tell, f"List each {row.words}", lambda: list_all(place, limit=1000)).data)

    def bucket(self, name: str) -> bool:
        """Makes a bucket, unless it exists already. Returns whether it had to be made."""
        if f"bucket {name}" not in self._made:
            details = self._models("object_storage").CreateBucketDetails(
                name=name, compartment_id=self._cloud.compartment, freeform_tags=MARK
            )
            client, place = self._session.client("object_storage"), self._cloud.namespace
            self._named(
                f"bucket {name}",
                lambda _: client.create_bucket(place, details).data,
                lambda: client.get_bucket(place, name).data,
                lambda bucket: str(bucket.name),
            )
        return f"bucket {name}" in self._made

    def repository(self, name: str) -> None:
        if f"repository {name}" not in self._made:
            details = self._models("artifacts").CreateContainerRepositoryDetails(
                display_name=name, compartment_id=self._cloud.compartment, freeform_tags=MARK
            )
            client = self._session.client("artifacts")
            self._named(
                f"repository {name}",
                lambda token: client.create_container_repository(details, opc_retry_token=token).data,
                lambda: self._repository(name),
                lambda repository: str(repository.id),
            )

    def remove(self, is_kept: Callable[[str, str], bool]) -> None:
        """Removes all stand-ins but those to keep, in reverse order: a resource before the one that contains it."""
        for key, identifier in reversed(list(self._made.items())):
            if is_kept(key.partition(" ")[0], identifier):
                continue
            unless_gone(self._tell, f"Remove what stood in for {key}", self._deletion(key, identifier))
            del self._made[key]
            self._save()
        if not self._made:
            self._file.unlink(missing_ok=True)

    def _deletion(self, key: str, identifier: str) -> Callable[[], Any]:
        what = key.partition(" ")[0]
        if what == "bucket":
            return lambda: empty_and_delete(self._session, self._tell, self._cloud.namespace, identifier)
        if what == "repository":
            client = self._session.client("artifacts")
            return lambda: client.delete_container_repository(identifier)
        row = KINDS[what].row
        delete = getattr(self._session.client(row.service), f"delete_{row.noun}")
        return lambda: delete(*identifier.split("/"))

    def _one(self, what: str, ocid: str) -> str:
        key = f"{what} {ocid}"
        if key not in self._made:
            self._make(key, KINDS[what])
        elif "vcn" in KINDS[what].within.values():
            self._meet(what, self._read(what, self._made[key]))
        elif what == "vcn":
            self._widen(self._made[key])
        self._met[what] = self._made[key].rsplit("/", 1)[-1]
        return self._met[what]

    def _meet(self, kind: str, item: Any) -> None:
        """Remembers this resource: the next one in the file may be in it, or in the same VCN."""
        self._met[kind] = str(item.id)
        if "vcn" in KINDS[kind].within.values():
            self._met.setdefault("vcn", str(item.vcn_id))

    def _read(self, what: str, identifier: str) -> Any:
        row = KINDS[what].row
        get = getattr(self._session.client(row.service), f"get_{row.noun}")
        return ask_oci(self._tell, f"Read what stands in for a {row.words}", lambda: get(identifier)).data

    def _widen(self, vcn: str) -> None:
        """Adds addresses to a stand-in VCN: stacks that share it may have their subnets in different parts."""
        there = self._read("vcn", vcn).cidr_blocks
        for block in network_of_others.stand_in_fields("vcn", self._network, self._session, "")["cidr_blocks"]:
            if self._network is not None and not any(ip_network(block).overlaps(ip_network(one)) for one in there):
                details = self._models("core").AddVcnCidrDetails(cidr_block=block)
                client = self._session.client("core")
                ask_oci(self._tell, "Widen the stand-in for a VCN", partial(client.add_vcn_cidr, vcn, details))

    def _make(self, key: str, kind: Kind) -> None:
        row = kind.row
        around: dict[str, Any] = {field: self._any(what, key) for field, what in kind.within.items()}
        path = [around.pop("log_group_id")] if row.noun == "log" else []
        if "security_list_ids" in around:
            around["security_list_ids"] = [around["security_list_ids"]]
        gateway = self._any("servicegateway", key) if row.noun == "route_table" else ""
        own = ask_oci(
            self._tell,
            f"Read what {key} needs",
            lambda: network_of_others.stand_in_fields(row.noun, self._network, self._session, gateway),
        )
        named = key.partition(" ")[2]
        shown = f"stand-in {len(self._made) + 1}" if is_ocid(named) or named.startswith(OTHERS) else named
        names = {"display_name": shown, **kind.fields, **own, **around}
        if row.noun != "log":
            names["compartment_id"] = self._cloud.compartment
        details = getattr(self._models(row.service), f"Create{row.stem}Details")(**names)
        client = self._session.client(row.service)
        create = partial(getattr(client, f"create_{row.noun}"), *path, details)
        answer = self._make_once(key, lambda token: create(opc_retry_token=token))
        identifier = self._worked(key, client, answer) if kind.work_request else answer.data.id
        self._made[key] = "/".join([*path, identifier])
        self._save()

    def _any(self, what: str, inner: str) -> str:
        """A resource of this kind that contains `inner`: the one that the file names, or else any of the same VCN. A
        VCN that no file names is not shared, because the networks in it are not."""
        if what in self._met:
            return self._met[what]
        if "vcn" in KINDS[what].within.values():
            return self._one(what, f"{OTHERS} in {self._any('vcn', inner)}")
        return self._one(what, f"{OTHERS} around {inner}" if what == "vcn" else OTHERS)

    def _make_once(self, key: str, create: Callable[[str], T]) -> T:
        """Makes a stand-in with a retry token that depends on its key only, so that a stand-in of a killed command is
        not made twice."""
        return make_once(
            call_of(key, self._tell), f"Make what stands in for {key}", f"{self._cloud.tenancy} {key}", create
        )

    def _worked(self, key: str, client: Any, answer: Any) -> str:
        request, deadline = answer.headers["opc-work-request-id"], time.monotonic() + _SECONDS
        what, read = f"Read the work request of {key}", partial(client.get_work_request, request)
        while (request := ask_oci(self._tell, what, read).data).status not in ("SUCCEEDED", "FAILED"):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if request.status != "SUCCEEDED":
            raise ProviderError(f"What stands in for {key} was not made: its work request is {request.status}.", AGAIN)
        return str(request.resources[0].identifier)

    def _named(
        self, key: str, create: Callable[[str], Any], get: Callable[[], Any], identify: Callable[[Any], str]
    ) -> None:
        """Makes a stand-in. If a stack has made a resource with this name, that one is used, and is not removed with
        the stand-ins."""
        try:
            made = self._make_once(key, create)
        except ProviderError as error:
            if getattr(error.__cause__, "status", None) != 409:
                raise
            made = ask_oci(self._tell, f"Read {key}", get)
            if (made.freeform_tags or {}) != MARK:
                return
        self._made[key] = identify(made)
        self._save()

    def _repository(self, name: str) -> Any:
        client = self._session.client("artifacts")
        repositories = client.list_container_repositories(self._cloud.compartment, display_name=name).data.items
        return client.get_container_repository(repositories[0].id).data

    def _save(self) -> None:
        draft = self._file.with_suffix(f".{os.getpid()}.new")
        draft.write_text(json.dumps(self._made))
        draft.replace(self._file)

    def _models(self, client: str) -> Any:
        return sdk_module(f"{client}.models")
