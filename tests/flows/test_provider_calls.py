# SPDX-License-Identifier: Apache-2.0
"""The local plugin `oci` makes the calls that the types' rows say of Oracle's, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pulumi import _types

from components.oci.types import SERVED_TYPES
from localcloud.control import Cloud
from localcloud.oci.sdk import provider_clients
from tests.flows.changed_values import input_types, official
from tests.support.call_record import listening, step_of
from tests.support.plugin_world import BUCKET, CASES, World, plugin_world

OBJECT = "oci:ObjectStorage/storageObject:StorageObject"

# Outputs of the real provider that the plugin does not give, each with the reason. Inputs that nobody set are left out.
_NO_ANSWER = "the API answers with nothing, and the provider then shows nothing"
_OWN_BOOKS = "the provider's own bookkeeping"
NOT_GIVEN: Mapping[str, Mapping[str, str]] = {
    "oci:Core/subnet:Subnet": dict.fromkeys(("ipv6virtualRouterIp", "subnetDomainName"), _NO_ANSWER),
    "oci:Identity/dynamicGroup:DynamicGroup": {"inactiveState": _NO_ANSWER},
    "oci:Identity/policy:Policy": {
        "inactiveState": _NO_ANSWER, **dict.fromkeys(("ETag", "lastUpdateETag", "policyHash"), _OWN_BOOKS)
    },
    BUCKET: {
        "objectLifecyclePolicyEtag": _NO_ANSWER,
        **dict.fromkeys(("approximateCount", "approximateSize"), "each object would make a refresh show a change"),
    },
    OBJECT: {"workRequestId": _NO_ANSWER},
    "oci:Artifacts/containerRepository:ContainerRepository": {"timeLastPushed": _NO_ANSWER},
    "oci:DataScience/computeTarget:ComputeTarget": {"lifecycleDetails": _NO_ANSWER},
    "oci:Vault/secret:Secret": dict.fromkeys(
        (
            "isAutoGenerationEnabled", "isReplica", "lastRotationTime", "lifecycleDetails", "nextRotationTime",
            "rotationStatus", "sourceRegionInformations", "timeOfCurrentVersionExpiry", "timeOfDeletion",
        ),
        _NO_ANSWER,
    ),
    "oci:DataScience/job:Job": {
        "lifecycleDetails": _NO_ANSWER, **dict.fromkeys(("artifactContentMd5", "artifactLastModified"), _OWN_BOOKS)
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with plugin_world(shared_cloud, tmp_path_factory.mktemp("world")) as made:
        yield made


def test_every_client_of_the_provider_is_led_to_the_local_cloud(shared_cloud: Cloud) -> None:
    """One without an override would send its requests to Oracle's own hosts."""
    overrides = dict(entry.split("=") for entry in shared_cloud.env["CLIENT_HOST_OVERRIDES"].split(";"))
    assert provider_clients() <= overrides.keys()
    assert set(overrides.values()) == {shared_cloud.endpoint}


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_each_step_of_a_resource_makes_the_calls_of_its_row(world: World, token: str) -> None:
    row, case, engine = SERVED_TYPES[token], CASES[token], world.engine
    inputs = case.inputs(world)
    with listening(world.cloud) as created:
        made = engine.create(token, "it", inputs)
    given, optional = set(_types.resource_types(official(token))), set(input_types(official(token, "Args")))
    assert given - set(made.outputs) - optional == NOT_GIVEN.get(token, {}).keys()
    assert set(made.outputs) - given <= {"id"}
    try:
        with listening(world.cloud) as read:
            seen = engine.refresh(made)
        assert seen
        assert seen.outputs == made.outputs
        with listening(world.cloud) as imported:
            assert engine.import_(token, "it", case.import_id(made))
        with listening(world.cloud) as updated:
            made = engine.update(made, {**inputs, **case.change}) if case.change else made
    finally:
        with listening(world.cloud) as deleted:
            engine.delete(made)
    assert created.names == step_of(row, "create", inputs)
    assert read.names == step_of(row, "read", inputs)
    # An import has no inputs, and so no content.
    assert imported.names == (set(row.read) if token != OBJECT else {"HeadObject"})
    assert updated.names == (step_of(row, "update", inputs) if case.change else set())
    assert deleted.names == step_of(row, "delete", inputs)


def test_an_object_from_a_file_is_created_and_deleted_with_all_versions(world: World) -> None:
    bucket = world.resource(BUCKET).outputs["name"]
    (world.folder / "code.py").write_text("print(1)\n")
    inputs = {
        "namespace": world.cloud.namespace, "bucket": bucket, "object": "code.py",
        "source": str(world.folder / "code.py"), "deleteAllObjectVersions": True,
    }  # fmt: skip
    with listening(world.cloud) as created:
        made = world.engine.create(OBJECT, "file", inputs)
    with listening(world.cloud) as deleted:
        world.engine.delete(made)
    assert created.names == step_of(SERVED_TYPES[OBJECT], "create", inputs)
    assert deleted.names == step_of(SERVED_TYPES[OBJECT], "delete", inputs)
    assert world.engine.refresh(made) is None
