# SPDX-License-Identifier: Apache-2.0
"""Nodes reach the cloud's services by the subnet's routes and rules, with the permissions of their run."""

import oci
import pytest

from tests.support.cloud_world import World
from tests.support.network_world import ANYWHERE, OBJECT_STORAGE_ADDRESS, SERVICES, SERVICES_ADDRESS, Network, egress

OBJECT_STORAGE_ONLY = "oci-iad-objectstorage"


@pytest.fixture(scope="module")
def bucket(world: World) -> str:
    """A bucket that only runs and administrators may write to."""
    storage, identity, cloud = world.clients.storage, world.clients.identity, world.clients.cloud
    details = oci.object_storage.models.CreateBucketDetails(name="out", compartment_id=world.compartment)
    storage.create_bucket(cloud.namespace, details)
    rule = f"all {{resource.type = 'datasciencejobrun', resource.compartment.id = '{world.compartment}'}}"
    identity.create_dynamic_group(
        oci.identity.models.CreateDynamicGroupDetails(
            compartment_id=cloud.tenancy, name="runs", description="runs", matching_rule=rule
        )
    )
    statements = ["allow dynamic-group runs to manage objects in compartment training where target.bucket.name='out'"]
    identity.create_policy(
        oci.identity.models.CreatePolicyDetails(
            compartment_id=cloud.tenancy, name="runs", description="runs", statements=statements
        )
    )
    return "out"


_SDK = """
import oci
signer = oci.auth.signers.get_resource_principals_signer()
where = dict(each.split('=') for each in os.environ['CLIENT_HOST_OVERRIDES'].split(';'))
storage = oci.object_storage.ObjectStorageClient(
    {}, signer=signer, service_endpoint=where['oci_object_storage.ObjectStorageClient']
)
storage.put_object('trainyardlocal', 'out', 'result', b'from a node')
try:
    storage.list_buckets('trainyardlocal', os.environ['PROJECT_COMPARTMENT_OCID'])
except oci.exceptions.ServiceError as error:
    tell('refused', error.status)
"""


def test_a_node_writes_to_the_bucket_as_its_run(world: World, bucket: str) -> None:
    network = Network(world)
    network.route(SERVICES, network.service_gateway())
    subnet = network.subnet("10.0.1.0/24", [], [egress("tcp", SERVICES, 443)])
    run = network.run(_SDK, subnet)
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert world.lines(run) == ["refused 404"]
    storage, namespace = world.clients.storage, world.clients.cloud.namespace
    assert storage.get_object(namespace, bucket, "result").data.content == b"from a node"
    (flow,) = network.evidence(run)["flows"]
    assert (flow["direction"], flow["to"], flow["port"]) == ("egress", OBJECT_STORAGE_ADDRESS, 443)
    log = (world.clients.cloud.home / "server.log").read_text()
    assert f"PutObject by {run.id}" in log


_LOOK = f"""
for address in ('{SERVICES_ADDRESS}', '{OBJECT_STORAGE_ADDRESS}', '203.0.113.1'):
    try:
        reach(address, 443, seconds=3, patient=False)
        tell(address, 'reached')
    except OSError as error:
        tell(address, type(error).__name__, error.errno or '')
"""
UNREACHABLE = "OSError 101"


@pytest.mark.parametrize(
    ("cidr", "gateway", "allowed", "expected"),
    [
        # Without a gateway there is no route, and without a rule packets are dropped.
        ("10.10.0.0/16", "", [egress("all", ANYWHERE)], (UNREACHABLE, UNREACHABLE, UNREACHABLE)),
        ("10.11.0.0/16", SERVICES, [], ("TimeoutError ", "TimeoutError ", UNREACHABLE)),
        ("10.12.0.0/16", SERVICES, [egress("tcp", SERVICES, 443)], ("reached", "reached", UNREACHABLE)),
        ("10.13.0.0/16", SERVICES, [egress("tcp", SERVICES, 8443)], ("TimeoutError ", "TimeoutError ", UNREACHABLE)),
        ("10.14.0.0/16", OBJECT_STORAGE_ONLY, [egress("all", ANYWHERE)], (UNREACHABLE, "reached", UNREACHABLE)),
        # Services have public addresses, so NAT leads to them as well; there is no internet behind it here.
        ("10.15.0.0/16", "nat", [egress("all", ANYWHERE)], ("reached", "reached", UNREACHABLE)),
    ],
)
def test_a_node_reaches_only_what_routes_and_rules_allow(
    world: World, cidr: str, gateway: str, allowed: list[object], expected: tuple[str, str, str]
) -> None:
    network = Network(world, cidr)
    if gateway == "nat":
        place = {"compartment_id": world.compartment, "vcn_id": network.vcn.id}
        nat = network.client.create_nat_gateway(oci.core.models.CreateNatGatewayDetails(**place)).data.id
        network.route(ANYWHERE, nat)
    elif gateway:
        network.route(gateway, network.service_gateway(gateway))
    run = network.run(_LOOK, network.subnet(cidr.replace("0.0/16", "1.0/24"), [], allowed))
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert tuple(line.split(" ", 1)[1] for line in world.lines(run)) == expected
    assert network.evidence(run)["enforced"]


def test_an_added_route_takes_effect_on_live_nodes(world: World) -> None:
    network = Network(world, "10.16.0.0/16")
    script = f"""
tell('looking')
ends = time.monotonic() + 60
while time.monotonic() < ends:
    try:
        reach('{SERVICES_ADDRESS}', 443, seconds=2, patient=False)
        break
    except OSError:
        time.sleep(0.05)
else:
    raise SystemExit('never')
"""
    run = network.run(script, network.subnet("10.16.1.0/24", [], [egress("all", ANYWHERE)]))
    world.printed(run, "looking")
    network.route(SERVICES, network.service_gateway())
    assert world.finished(run, 90).lifecycle_state == "SUCCEEDED", world.lines(run)
