# SPDX-License-Identifier: Apache-2.0
"""How containers are started on DL1: requirements of the documents about distributed training there."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.aws_dl1.machine import options, ssh

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
        # Without EFA libfabric takes what there is.
        ("libfabric", "1.15.1", 0, {"HCCL_OVER_OFI": "1", "HCCL_SOCKET_IFNAME": "ens32"}),
        ("sockets", "1.9.0", 4, {"HCCL_OVER_TCP": "1", "HCCL_SOCKET_IFNAME": "ens32"}),
        ("sockets", "1.15.1", 4, {"HCCL_OVER_OFI": "1", "FI_PROVIDER": "tcp", "HCCL_SOCKET_IFNAME": "ens32"}),
    ],
)
def test_the_implementation_is_switched_by_environment(
    kind: str, release: str, interfaces: int, variables: dict[str, str]
) -> None:
    assert options.host_nic(kind, release, interfaces, "ens32") == variables


def test_libraries_of_the_ofi_wrapper_come_first_where_an_image_has_them() -> None:
    there = ["/root/hccl_ofi_wrapper", "/opt/amazon/efa/lib"]
    assert options.library_path("/usr/lib/habanalabs:", there) == (
        "/root/hccl_ofi_wrapper:/opt/amazon/efa/lib:/usr/lib/habanalabs"
    )
    assert options.library_path("", []) == ""


def test_containers_have_the_options_of_the_gaudi_documents() -> None:
    volumes = {"/opt/trainyard/launcher": Path("/opt/trainyard/launchers/1"), "/opt/trainyard/code": Path("/code/1")}
    words = options.run_words("trainyard-resnet-1", "image:1", "pass", 4, options.ENVIRONMENT, Path("/v"), volumes)
    line = " ".join(words)
    for wanted in (
        "--runtime=habana", "-e HABANA_VISIBLE_DEVICES=all", "-e OMPI_MCA_btl_vader_single_copy_mechanism=none",
        "--cap-add=sys_nice", "--net=host", "--ipc=host", "--device=/dev/infiniband",
    ):  # fmt: skip
        assert wanted in line
    assert "--volume=/opt/trainyard/launchers/1:/opt/trainyard/launcher:ro" in words
    assert "--volume=/code/1:/opt/trainyard/code:ro" in words
    assert words.index("image:1") > max(words.index(word) for word in words if word.startswith("--"))
    without = options.run_words("n", "image:1", "pass", 0, options.ENVIRONMENT, Path("/v"), {})
    assert not any("infiniband" in word for word in without)


def test_ssh_configuration_forwards_the_agent_outside_of_containers_only() -> None:
    outside, inside = ssh.config({}, inside=False), ssh.config({}, inside=True)
    for text in (outside, inside):
        assert "Host *\n    StrictHostKeyChecking no\n" in text
    assert "ForwardAgent yes" in outside
    assert "ForwardAgent" not in inside


def test_peers_have_the_ports_that_their_hosts_chose() -> None:
    peers = {"main-0": ssh.Peer("main-0", "10.0.0.1", 3022), "worker-0": ssh.Peer("worker-0", "10.0.0.2", 4022)}
    text = ssh.config(peers, inside=True)
    assert "Host worker-0 10.0.0.2\n    HostName 10.0.0.2\n    Port 4022\n" in text
    assert text.index("Port 4022") < text.index("Host *")
