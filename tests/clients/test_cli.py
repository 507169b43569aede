# SPDX-License-Identifier: Apache-2.0
"""The released `oci` CLI: creates, reads, changes and deletes every kind of resource, and the most important errors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from localcloud.control import Cloud
from tests.clients.conftest import Oci
from tests.support.waiting import eventually

ANYWHERE = "0.0.0.0/0"


def words(text: str) -> list[str]:
    return text.split()


def as_json(value: object) -> str:
    return json.dumps(value)


@dataclass(frozen=True)
class Place:
    """The resources that contain others, made on first use."""

    oci: Oci
    cloud: Cloud

    @property
    def compartment(self) -> str:
        return self.cloud.compartment

    @property
    def tenancy(self) -> str:
        return self.cloud.tenancy

    def _made(self, *arguments: str) -> str:
        return str(self.oci(*arguments).data["id"])

    @cached_property
    def vcn(self) -> str:
        return self._made(*words("network vcn create --cidr-block 10.0.0.0/16 --compartment-id"), self.compartment)

    @cached_property
    def gateway(self) -> str:
        command = words("network internet-gateway create --is-enabled true --compartment-id")
        return self._made(*command, self.compartment, "--vcn-id", self.vcn)

    @cached_property
    def services(self) -> list[dict[str, str]]:
        return [{"serviceId": self.oci(*words("network service list --limit 1")).data[0]["id"]}]

    @cached_property
    def project(self) -> str:
        return self._made(*words("data-science project create --compartment-id"), self.compartment)

    @cached_property
    def log_group(self) -> str:
        made = self.oci(*words("logging log-group create --display-name place --compartment-id"), self.compartment)
        assert made.code == 0, made.errors
        found = self.oci(*words("logging log-group list --display-name place --compartment-id"), self.compartment).data
        return str(found[0]["id"])


@dataclass(frozen=True)
class Kind:
    """One kind by the CLI's name. Words in braces are filled in from the surroundings and from `values`."""

    command: str
    id_option: str
    create: str
    change: str
    listed: str = "{here}"
    item: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    name: Sequence[str] = ("--display-name", "first")
    changed: Mapping[str, object] = field(default_factory=lambda: {"freeform-tags": {"team": "vision"}})
    ready: str = "AVAILABLE"


_PLACES = {"here": "compartment", "in_tenancy": "tenancy"}
_TAGS = "--freeform-tags {tags} --force"
_IN_VCN = "{here} --vcn-id {vcn}"
_RULES = [{"protocol": "all", "source": ANYWHERE}]
_EGRESS = [{"protocol": "all", "destination": ANYWHERE}]
KINDS = (
    Kind("iam compartment", "--compartment-id", "{in_tenancy} --name first --description d", _TAGS,
         "{in_tenancy}", name=(), ready="ACTIVE"),
    Kind("iam policy", "--policy-id", "{in_tenancy} --name first --description d --statements {statements}",
         _TAGS, "{in_tenancy}", name=(), ready="ACTIVE",
         values={"statements": ["Allow group scientists to inspect vcns in tenancy"]}),
    Kind("iam dynamic-group", "--dynamic-group-id",
         "{in_tenancy} --name first --description d --matching-rule {rule}", "--freeform-tags {tags} --force",
         "{in_tenancy}", name=(), ready="ACTIVE", values={"rule": "ALL {resource.type = 'datasciencejobrun'}"}),
    Kind("network vcn", "--vcn-id", "{here} --cidr-block 10.1.0.0/16", _TAGS),
    Kind("network subnet", "--subnet-id", _IN_VCN + " --cidr-block 10.0.9.0/24", _TAGS),
    Kind("network security-list", "--security-list-id",
         _IN_VCN + " --ingress-security-rules {in} --egress-security-rules {out}", _TAGS,
         values={"in": _RULES, "out": _EGRESS}),
    Kind("network nsg", "--nsg-id", _IN_VCN, _TAGS),
    Kind("network route-table", "--rt-id", _IN_VCN + " --route-rules {routes}", _TAGS, values={"routes": []}),
    Kind("network dhcp-options", "--dhcp-id", _IN_VCN + " --options {options}", _TAGS,
         values={"options": [{"type": "DomainNameServer", "serverType": "VcnLocalPlusInternet"}]}),
    Kind("network nat-gateway", "--nat-gateway-id", _IN_VCN, _TAGS),
    Kind("network service-gateway", "--service-gateway-id", _IN_VCN + " --services {services}", _TAGS),
    Kind("artifacts container repository", "--repository-id", "{here} --display-name vision/dt",
         "--is-public true", name=(), changed={"is-public": True}),
    Kind("data-science project", "--project-id", "{here}", _TAGS, ready="ACTIVE"),
    Kind("data-science job", "--job-id",
         "{here} --project-id {project} --configuration-details {configuration}"
         " --infrastructure-configuration-details {infrastructure}", _TAGS,
         values={"configuration": {"jobType": "DEFAULT"},
                 "infrastructure": {"jobInfrastructureType": "ME_STANDALONE", "shapeName": "VM.Standard2.1",
                                    "blockStorageSizeInGBs": 50}}, ready="CREATING"),
)  # fmt: skip


@pytest.fixture(scope="module")
def place(oci: Oci, shared_cloud: Cloud) -> Place:
    return Place(oci, shared_cloud)


def _filled(place: Place, kind: Kind, text: str) -> list[str]:
    values = {"tags": {"team": "vision"}, **kind.values}

    def fill(word: str) -> list[str]:
        if not (word.startswith("{") and word.endswith("}")):
            return [word]
        name = word[1:-1]
        if name in _PLACES:
            return ["--compartment-id", getattr(place, _PLACES[name])]
        value = values[name] if name in values else getattr(place, name)
        return [value if isinstance(value, str) else as_json(value)]

    return [filled for word in text.split() for filled in fill(word)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.command.replace(" ", "-"))
def test_a_resource_is_created_read_changed_and_deleted(oci: Oci, place: Place, kind: Kind) -> None:
    command = kind.command.split()
    made = oci(*command, "create", *_filled(place, kind, kind.create), *kind.name).data
    identified = (kind.id_option, made["id"])
    listed = oci(*command, "list", *_filled(place, kind, kind.listed), "--all").data
    items = listed["items"] if isinstance(listed, dict) else listed
    assert made["id"] in [item["id"] for item in items]
    eventually(lambda: oci(*command, "get", *identified).data["lifecycle-state"], lambda state: state == kind.ready)
    changed = oci(*command, "update", *identified, *_filled(place, kind, kind.change)).data
    assert {name: changed[name] for name in kind.changed} == kind.changed
    deleted = oci(*command, "delete", *identified, "--force")
    assert deleted.code == 0, deleted.errors
    gone = oci(*command, "get", *identified)
    if gone.code == 0:
        assert gone.data["lifecycle-state"] in {"TERMINATED", "DELETED", "DELETING", "INACTIVE"}
    else:
        assert (gone.error["status"], gone.error["code"]) == (404, "NotAuthorizedOrNotFound")


def test_rules_of_a_network_security_group_are_added_and_removed(oci: Oci, place: Place) -> None:
    nsg = oci(*words("network nsg create --compartment-id"), place.compartment, "--vcn-id", place.vcn).data["id"]
    rule = {"direction": "INGRESS", "protocol": "6", "source": nsg, "sourceType": "NETWORK_SECURITY_GROUP"}
    added = oci(*words("network nsg rules add --nsg-id"), nsg, "--security-rules", as_json([rule])).data
    assert [found["source"] for found in added["security-rules"]] == [nsg]
    listed = oci(*words("network nsg rules list --nsg-id"), nsg).data
    remove = as_json([listed[0]["id"]])
    assert oci(*words("network nsg rules remove --nsg-id"), nsg, "--security-rule-ids", remove).code == 0
    assert not oci(*words("network nsg rules list --nsg-id"), nsg).data


def test_logs_are_made_by_work_requests(oci: Oci, place: Place) -> None:
    create = words(
        "logging log create --display-name first --log-type CUSTOM --wait-for-state SUCCEEDED --log-group-id"
    )
    made = oci(*create, place.log_group, "--wait-interval-seconds", "1")
    assert made.code == 0, made.errors
    (log,) = oci(*words("logging log list --log-group-id"), place.log_group).data
    assert log["display-name"] == "first"
    delete = ("logging", "log", "delete", "--log-group-id", place.log_group, "--log-id", log["id"], "--force")
    assert oci(*delete).code == 0
    assert not oci(*words("logging log list --log-group-id"), place.log_group).data


def test_objects_are_put_listed_read_and_deleted(oci: Oci, place: Place, tmp_path: Path) -> None:
    made = oci(*words("os bucket create --name things --compartment-id"), place.compartment).data
    assert made["namespace"] == place.cloud.namespace
    source, copy = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_bytes(b"0123456789" * 1000)
    put = ("os", "object", "put", "--bucket-name", "things", "--file", str(source), "--name", "in/a b.txt", "--force")
    assert oci(*put).code == 0
    get = ("os", "object", "get", "--bucket-name", "things", "--name", "in/a b.txt", "--file", str(copy))
    assert oci(*get).code == 0
    assert copy.read_bytes() == source.read_bytes()
    assert oci(*get, "--range", "bytes=0-4").code == 0
    assert copy.read_bytes() == b"01234"
    listed = oci(*words("os object list --bucket-name things --prefix in/")).data
    assert [item["name"] for item in listed] == ["in/a b.txt"]
    full = oci(*words("os bucket delete --bucket-name things --force")).error
    assert (full["status"], full["code"]) == (409, "BucketNotEmpty")
    assert oci("os", "object", "delete", "--bucket-name", "things", "--name", "in/a b.txt", "--force").code == 0
    assert oci(*words("os bucket delete --bucket-name things --force")).code == 0


def test_a_large_object_is_uploaded_in_parts(oci: Oci, place: Place, tmp_path: Path) -> None:
    assert oci(*words("os bucket create --name parts --compartment-id"), place.compartment).code == 0
    source, copy = tmp_path / "large", tmp_path / "copy"
    source.write_bytes(bytes(range(256)) * 4096 * 12)  # 12 MiB: two parts, the second a short one
    put = oci(*words("os object put --bucket-name parts --name large --part-size 10 --force --file"), str(source))
    assert put.code == 0, put.errors
    assert oci(*words("os object get --bucket-name parts --name large --file"), str(copy)).code == 0
    assert copy.read_bytes() == source.read_bytes()


def test_a_run_is_made_watched_read_and_cancelled(oci: Oci, place: Place, tmp_path: Path) -> None:
    (script := tmp_path / "train.py").write_text("import time; print('training', flush=True); time.sleep(600)")
    configuration = {"jobType": "DEFAULT", "environmentVariables": {"PYTHONUNBUFFERED": "1"}}
    infrastructure = {
        "jobInfrastructureType": "ME_STANDALONE",
        "shapeName": "VM.Standard2.1",
        "blockStorageSizeInGBs": 50,
    }
    where = ("--compartment-id", place.compartment, "--project-id", place.project)
    job = oci(*words("data-science job create"), *where, "--configuration-details", as_json(configuration),
              "--infrastructure-configuration-details", as_json(infrastructure)).data["id"]  # fmt: skip
    upload = ("--job-artifact-file", str(script), "--content-disposition", "attachment; filename=train.py")
    assert oci(*words("data-science job create-job-artifact --job-id"), job, *upload).code == 0
    run = oci(*words("data-science job-run create"), *where, "--job-id", job).data["id"]
    get = (*words("data-science job-run get --job-run-id"), run)
    eventually(lambda: oci(*get).data["lifecycle-state"], lambda state: state == "IN_PROGRESS")
    listed = oci(*words("data-science job-run list --compartment-id"), place.compartment, "--job-id", job).data
    assert [item["id"] for item in listed] == [run]
    blocked = oci(*words("data-science job delete --force --job-id"), job).error
    assert blocked["status"] == 409
    assert oci(*words("data-science job-run cancel --job-run-id"), run).code == 0
    eventually(lambda: oci(*get).data["lifecycle-state"], lambda state: state == "CANCELED")
    delete = oci(*words("data-science job delete --force --delete-related-job-runs true --job-id"), job)
    assert delete.code == 0, delete.errors


READS = (
    "os ns get",
    "iam region-subscription list",
    "iam region list",
    "iam availability-domain list",
    "iam group list",
    "iam user list",
    "network service list",
    "data-science job-shape list --compartment-id {compartment}",
    "data-science notebook-session list --compartment-id {compartment}",
    "artifacts container image list --compartment-id {compartment}",
    "limits service list --compartment-id {tenancy} --all",
)


@pytest.mark.parametrize("command", READS)
def test_read_only_resources_are_listed(oci: Oci, place: Place, command: str) -> None:
    found = oci(*(word.format(compartment=place.compartment, tenancy=place.tenancy) for word in command.split()))
    assert found.code == 0, found.errors


def test_a_resource_in_use_cannot_be_deleted(oci: Oci, place: Place) -> None:
    assert place.gateway
    refused = oci(*words("network vcn delete --force --vcn-id"), place.vcn).error
    assert (refused["status"], refused["code"]) == (409, "Conflict")
    assert "internet-gateway" in refused["message"].lower().replace(" ", "-")


def test_an_etag_that_is_not_the_last_is_refused(oci: Oci, place: Place) -> None:
    update = (*words("network vcn update --force --display-name other --vcn-id"), place.vcn, "--if-match", "stale")
    refused = oci(*update).error
    assert (refused["status"], refused["code"]) == (412, "NoEtagMatch")


def test_a_name_that_is_taken_is_refused(oci: Oci, place: Place) -> None:
    create = (*words("os bucket create --name taken --compartment-id"), place.compartment)
    assert oci(*create).code == 0
    refused = oci(*create).error
    assert (refused["status"], refused["code"]) == (409, "BucketAlreadyExists")


def test_a_value_that_oci_would_refuse_is_refused(oci: Oci, place: Place) -> None:
    command = (
        *words("network subnet create --cidr-block 192.168.0.0/24 --compartment-id"),
        place.compartment,
        "--vcn-id",
        place.vcn,
    )
    refused = oci(*command).error
    assert (refused["status"], refused["code"]) == (400, "InvalidParameter")


def test_lists_are_paged(oci: Oci, place: Place) -> None:
    for index in range(3):
        create = words(f"network nsg create --display-name paged-{index} --compartment-id")
        assert oci(*create, place.compartment, "--vcn-id", place.vcn).code == 0
    names = oci(
        *words("network nsg list --all --page-size 1 --compartment-id"), place.compartment, "--vcn-id", place.vcn
    ).data
    assert {"paged-0", "paged-1", "paged-2"} <= {item["display-name"] for item in names}


def test_a_refused_caller_gets_ocis_error(oci: Oci, oci_as_user: Oci, place: Place) -> None:
    listing = (*words("network vcn list --compartment-id"), place.compartment)
    refused = oci_as_user(*listing).error
    assert (refused["status"], refused["code"]) == (404, "NotAuthorizedOrNotFound")
    statements = as_json(["Allow group scientists to inspect vcns in tenancy"])
    policy = (
        *words("iam policy create --name readers --description d --statements"),
        statements,
        "--compartment-id",
        place.tenancy,
    )
    assert oci(*policy).code == 0
    assert oci_as_user(*listing).code == 0


def test_a_missing_operation_is_named(oci: Oci, place: Place) -> None:
    missing = oci(*words("network drg list --compartment-id"), place.compartment).error
    assert (missing["status"], missing["code"]) == (400, "MethodNotImplemented")
    assert "ListDrgs" in missing["message"]
