# SPDX-License-Identifier: Apache-2.0
"""How containers are started on DL1: requirements of the documents about distributed training there."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.aws.run_inputs import HOST_NIC_VARIABLE
from launcher.aws_dl1 import host_nic
from launcher.aws_dl1.container import prepare_container
from launcher.aws_dl1.fabric import Fabric, detect_fabric, fabric_words
from launcher.aws_dl1.host_nic import BEFORE_NODE_JSON_NAMED_THEM as GAUDI
from launcher.aws_dl1.identity import NodeIdentity
from launcher.aws_dl1.machine import options, ssh
from launcher.printing import LinePrinter

LIBFABRIC = {"HCCL_OVER_OFI": "1", "FI_PROVIDER": "efa", "HCCL_SOCKET_IFNAME": "ens32"}


@pytest.mark.parametrize(
    ("kernel", "rdma_core", "wanted"),
    [
        ("5.4.0-1103-aws", "35.0", True),
        ("5.12.19", "46.0", True),
        ("5.13.0", "34.1", True),
        ("5.13.0-1029-aws", "35.0-1", False),
        ("5.15.0-1051-aws", "46.0", False),
        ("6.1.0", "50.0-2", False),
        ("4.14.336-257.562.amzn2.x86_64", "46.amzn0-1.amzn2", True),
        ("6.1.0", "", True),
        ("", "46", True),
    ],
)
def test_fi_efa_fork_safe_is_set_unless_kernel_5_13_and_rdma_core_35(kernel: str, rdma_core: str, wanted: bool) -> None:
    assert options.fork_safety(kernel, rdma_core) == ({"FI_EFA_FORK_SAFE": "1"} if wanted else {})


@pytest.mark.parametrize(
    ("kind", "release", "interfaces", "variables"),
    [
        ("libfabric", "1.15.1", 4, LIBFABRIC),
        ("libfabric", "1.9.0", 1, LIBFABRIC),
        # Without EFA, libfabric chooses itself.
        ("libfabric", "1.15.1", 0, {"HCCL_OVER_OFI": "1", "HCCL_SOCKET_IFNAME": "ens32"}),
        ("sockets", "1.9.0", 4, {"HCCL_OVER_TCP": "1", "HCCL_SOCKET_IFNAME": "ens32"}),
        ("sockets", "1.15.1", 4, {"HCCL_OVER_OFI": "1", "FI_PROVIDER": "tcp", "HCCL_SOCKET_IFNAME": "ens32"}),
    ],
)
def test_the_implementation_is_switched_by_environment(
    kind: str, release: str, interfaces: int, variables: dict[str, str]
) -> None:
    assert host_nic.transport_variables(kind, release, interfaces, "ens32") == variables


def fabric(kernel: str = "5.15.0-1051-aws", libfabric: str = "1.18.1amzn1.0", efa: bool = True) -> Fabric:
    return Fabric(kernel, libfabric, efa)


DIRECT = {"RDMAV_FORK_SAFE": "1", "FI_EFA_USE_DEVICE_RDMA": "1"}
SOCKETS = {"HCCL_OVER_OFI": "1", "FI_PROVIDER": "tcp", "HCCL_SOCKET_IFNAME": "ens32"}


@pytest.mark.parametrize(
    ("environment", "there", "variables", "words"),
    [
        (LIBFABRIC, fabric(), {"HCCL_OVER_OFI": None, **DIRECT}, "Gaudi Direct over EFA (kernel 5.15.0-1051-aws,"),
        (LIBFABRIC, fabric("5.12.0", "1.16.1"), {"HCCL_OVER_OFI": None, **DIRECT}, "Gaudi Direct over EFA"),
        (
            LIBFABRIC,
            fabric("5.4.0-1103-aws"),
            {},
            "host's memory: Gaudi Direct is not possible (kernel 5.4.0-1103-aws,",
        ),
        (LIBFABRIC, fabric(libfabric="1.16.0"), {}, "(libfabric 1.16.0, and 1.16.1 is needed)"),
        (LIBFABRIC, fabric(libfabric=""), {}, "the image has no fi_info"),
        (
            LIBFABRIC,
            fabric(efa=False),
            {"FI_PROVIDER": "tcp"},
            "TCP sockets: libfabric 1.18.1amzn1.0 of the image finds",
        ),
        ({**LIBFABRIC, "TRAINYARD_HOST_NIC": "host-memory"}, fabric(), {}, "host's memory, as the stack file says"),
        ({**LIBFABRIC, "TRAINYARD_HOST_NIC_OWN": "HCCL_OVER_OFI"}, fabric(), {}, "environment says (HCCL_OVER_OFI)"),
        # An earlier release's machine does not say what the stack file sets, but the value differs from the machine's.
        ({**LIBFABRIC, "HCCL_OVER_OFI": "0"}, fabric(), {}, "as the environment says"),
        (SOCKETS, fabric(), {}, "TCP sockets, over ens32 only"),
        ({"HCCL_OVER_TCP": "1"}, fabric(), {}, "TCP sockets, over one interface only"),
    ],
)
def test_the_best_transport_that_kernel_and_libfabric_allow_is_chosen(
    environment: dict[str, str], there: Fabric, variables: dict[str, str | None], words: str
) -> None:
    way = host_nic.choose_transport(environment, there)
    assert way.variables == variables
    assert words in way.words


def write_fi_info(program: Path) -> None:
    program.parent.mkdir()
    says = "fi_info: 1.18.1amzn1.0\nlibfabric: 1.18.1amzn1.0\nlibfabric api: 1.18"
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo '{says}' || [ -z \"$NO_EFA\" ]\n")
    program.chmod(0o755)


def test_the_fabric_is_that_of_the_image(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "fi_info"
    assert detect_fabric("5.15.0", {"LIBFABRIC_ROOT": str(tmp_path)}, ()) == fabric("5.15.0", "", False)
    write_fi_info(program)
    for more, efa in (({}, True), ({"NO_EFA": "1"}, False)):
        there = detect_fabric("5.15.0", {"LIBFABRIC_ROOT": str(tmp_path), **more}, ())
        assert there == fabric("5.15.0", efa=efa)


@pytest.mark.parametrize(
    ("interfaces", "there", "words"),
    [
        (0, fabric(), "TCP sockets"),
        (32, fabric(libfabric=""), "EFA, if the image has libraries for it"),
        (32, fabric(efa=False), "TCP sockets: libfabric 1.18.1amzn1.0 of the image finds no EFA"),
        (32, fabric(), "EFA over 32 interfaces (libfabric 1.18.1amzn1.0)"),
    ],
)
def test_where_libraries_of_the_image_choose_the_transport_the_words_say_what_they_find(
    interfaces: int, there: Fabric, words: str
) -> None:
    assert fabric_words(interfaces, there).startswith(words)


@pytest.mark.parametrize(
    ("chosen", "no_efa", "problem"),
    [
        ({"TRAINYARD_EFA_INTERFACES": "32"}, "1", "libfabric 1.18.1amzn1.0 of the image finds no EFA provider"),
        ({"TRAINYARD_EFA_INTERFACES": "32"}, "", ""),
        (LIBFABRIC, "1", "libfabric 1.18.1amzn1.0 of the image finds no EFA provider"),
        (LIBFABRIC, "", ""),
        # What the stack file chose is no problem.
        ({**SOCKETS, "FI_PROVIDER": "tcp"}, "1", ""),
        ({"HCCL_OVER_TCP": "1"}, "1", ""),
        ({"TRAINYARD_EFA_INTERFACES": "32", "FI_PROVIDER": "tcp"}, "1", ""),
    ],
)
def test_a_container_tells_its_launcher_that_the_image_finds_no_efa(
    tmp_path: Path, chosen: dict[str, str], no_efa: str, problem: str
) -> None:
    write_fi_info(tmp_path / "bin" / "fi_info")
    environment = {"LIBFABRIC_ROOT": str(tmp_path), "NO_EFA": no_efa, **chosen}
    prepare_container(environment, tmp_path / "start", tmp_path / "code", tmp_path, LinePrinter())
    identity = NodeIdentity({"peers": {"from": "bucket"}}, environment)
    assert identity.transport_problem("efa") == problem
    assert identity.transport_problem("") == ""


def test_the_stack_and_the_container_call_the_choice_by_one_name() -> None:
    assert HOST_NIC_VARIABLE == host_nic.VARIABLE


def test_libraries_of_the_ofi_wrapper_come_first_where_an_image_has_them() -> None:
    there = [host_nic.WRAPPER, "/opt/amazon/efa/lib"]
    assert options.library_path("/usr/lib/habanalabs:", there) == (
        "/root/hccl_ofi_wrapper:/opt/amazon/efa/lib:/usr/lib/habanalabs"
    )
    assert options.library_path("", []) == ""


def test_containers_have_the_options_of_the_gaudi_documents() -> None:
    volumes = {"/opt/trainyard/launcher": Path("/opt/trainyard/launchers/1"), "/opt/trainyard/code": Path("/code/1")}
    words = options.run_words(
        "trainyard-resnet-1", "image:1", "pass", GAUDI, 4, GAUDI.environment, Path("/v"), volumes, Path("/scratch/1")
    )
    line = " ".join(words)
    for wanted in (
        "--runtime=habana", "-e HABANA_VISIBLE_DEVICES=all", "-e OMPI_MCA_btl_vader_single_copy_mechanism=none",
        "--cap-add=sys_nice", "--net=host", "--ipc=host", "--device=/dev/infiniband",
    ):  # fmt: skip
        assert wanted in line
    assert "--volume=/opt/trainyard/launchers/1:/opt/trainyard/launcher:ro" in words
    assert "--volume=/code/1:/opt/trainyard/code:ro" in words
    assert "--volume=/scratch/1:/opt/trainyard/scratch" in words
    assert words.index("image:1") > max(words.index(word) for word in words if word.startswith("--"))
    without = options.run_words("n", "image:1", "pass", GAUDI, 0, {}, Path("/v"), {}, Path("/scratch/1"))
    assert not any("infiniband" in word for word in without)


def test_ssh_configuration_forwards_the_agent_outside_of_containers_only() -> None:
    outside, inside = ssh.ssh_config({}, inside=False), ssh.ssh_config({}, inside=True)
    for text in (outside, inside):
        assert "Host *\n    StrictHostKeyChecking no\n" in text
    assert "ForwardAgent yes" in outside
    assert "ForwardAgent" not in inside


def test_peers_have_the_ports_that_their_hosts_chose() -> None:
    peers = {"main-0": ssh.Peer("main-0", "10.0.0.1", 3022), "worker-0": ssh.Peer("worker-0", "10.0.0.2", 4022)}
    text = ssh.ssh_config(peers, inside=True)
    assert "Host worker-0 10.0.0.2\n    HostName 10.0.0.2\n    Port 4022\n" in text
    assert text.index("Port 4022") < text.index("Host *")
