# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from components.oci.client.session import CLIENTS
from components.oci.types.functions import FUNCTIONS
from components.platform.calls import ProviderError
from localcloud.oci.plugin.convert import from_model, pulumi_name_of_field, to_model
from localcloud.oci.plugin.plugin import LocalOci
from localcloud.plugins.resource_table import project_live_value


@pytest.mark.parametrize(
    ("api", "kind", "pulumi"),
    [
        ("lifecycleState", "str", "state"),
        ("ipv4CidrBlocks", "list[str]", "ipv4cidrBlocks"),
        ("isIpv6Enabled", "bool", "isIpv6enabled"),
        ("cmd", "list[str]", "cmds"),
        ("jobStorageMountConfigurationDetailsList", "list[X]", "jobStorageMountConfigurationDetailsLists"),
        ("memoryInGBs", "float", "memoryInGbs"),
        ("services", "list[X]", "services"),
    ],
)
def test_api_names_become_pulumi_names(api: str, kind: str, pulumi: str) -> None:
    assert pulumi_name_of_field(api, kind) == pulumi


@pytest.mark.parametrize(
    ("service", "model", "properties"),
    [
        ("core", "Vcn", {"cidrBlocks": ["10.0.0.0/16"], "dnsLabel": "v"}),
        ("core", "RouteTable", {"routeRules": [{"networkEntityId": "n", "destination": "d"}]}),
        ("identity", "Policy", {"statements": ["a", "b"], "definedTags": {"ns.key": "v"}}),
        ("data_science", "Job", {"jobConfigurationDetails": {"jobType": "DEFAULT", "maximumRuntimeInMinutes": "30"}}),
        (
            "data_science",
            "Job",
            {
                "jobEnvironmentConfigurationDetails": {
                    "jobEnvironmentType": "OCIR_CONTAINER",
                    "image": "i",
                    "cmds": ["a"],
                    "entrypoints": ["b"],
                }
            },
        ),
    ],
)
def test_properties_survive_conversion_to_the_api_and_back(service: str, model: str, properties: Any) -> None:
    assert from_model(to_model(service, model, properties)) == properties


def test_numbers_as_text_become_numbers_for_the_api() -> None:
    details = to_model(
        "data_science", "JobConfigurationDetails", {"jobType": "DEFAULT", "maximumRuntimeInMinutes": "30"}
    )
    assert details.maximum_runtime_in_minutes == 30


def test_a_value_outside_its_enumeration_is_refused() -> None:
    with pytest.raises(ProviderError, match="`public_access_type`, must be None or one of"):
        to_model("object_storage", "CreateBucketDetails", {"publicAccessType": "Everybody"})


def test_ports_of_security_lists_are_flat_in_pulumi() -> None:
    resource: Any = LocalOci().resource("oci:Core/securityList:SecurityList")
    rule = {"protocol": "6", "source": "s", "tcpOptions": {"min": 1, "max": 2, "sourcePortRange": {"min": 3, "max": 4}}}
    nested = resource.to_api({"ingressSecurityRules": [rule]})["ingressSecurityRules"][0]
    assert nested["tcpOptions"] == {
        "destinationPortRange": {"min": 1, "max": 2},
        "sourcePortRange": {"min": 3, "max": 4},
    }
    assert resource.from_api({"ingressSecurityRules": [nested]})["ingressSecurityRules"] == [
        {**rule, "stateless": False}
    ]


def test_a_single_port_becomes_a_range() -> None:
    resource: Any = LocalOci().resource("oci:Core/securityList:SecurityList")
    rule = {"protocol": "6", "source": "s", "tcpOptions": {"min": 22}}
    nested = resource.to_api({"ingressSecurityRules": [rule]})["ingressSecurityRules"][0]
    assert nested["tcpOptions"]["destinationPortRange"] == {"min": 22, "max": 22}


@pytest.mark.parametrize(
    ("live", "desired", "reduced"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1}),
        ({"a": None}, {"a": ""}, {"a": ""}),
        ({"a": 3}, {"a": 1}, {"a": 3}),
        ({"rules": [{"x": 2, "more": 1}, {"x": 1}]}, {"rules": [{"x": 1}, {"x": 2}]}, {"rules": [{"x": 1}, {"x": 2}]}),
        ({"rules": [{"x": 2}]}, {"rules": [{"x": 1}]}, {"rules": [{"x": 2}]}),
        ({"list": [{"x": 1, "more": 1}]}, {"list": [{"x": 1}]}, {"list": [{"x": 1}]}),
        ({"list": [1]}, {"list": [1, 2]}, {"list": [1]}),
    ],
)
def test_values_set_by_the_cloud_are_not_drift(live: Any, desired: Any, reduced: Any) -> None:
    assert project_live_value(live, desired, "", frozenset({"rules"})) == reduced


def test_endpoints_must_be_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def configure(url: str, names: list[str]) -> None:
        monkeypatch.setenv("CLIENT_HOST_OVERRIDES", ";".join(f"{name}={url}" for name in names))
        LocalOci().configure({})

    every = [name for _, name in CLIENTS.values()]
    with pytest.raises(ProviderError, match="not on this machine"):
        configure("http://203.0.113.1:80", every)
    with pytest.raises(ProviderError, match="names no endpoint for ArtifactsClient"):
        configure("http://203.0.113.1:80", [name for name in every if name != "ArtifactsClient"])


def test_functions_name_known_clients() -> None:
    assert {function.service for function in FUNCTIONS.values()} <= set(CLIENTS)


def test_a_value_the_sdk_does_not_know_is_refused() -> None:
    with pytest.raises(ProviderError, match="`format`: `markdown` is not a value"):
        to_model("artifacts", "ContainerRepositoryReadme", {"content": "x", "format": "markdown"})
