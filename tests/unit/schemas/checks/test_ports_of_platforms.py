# SPDX-License-Identifier: Apache-2.0
"""Ports are judged as the platform uses them: ranges on OCI only, and no number at all where the platform chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.judge import judge_file

_TOP = {
    "oci": """\
  oci:region: us-ashburn-1
  trainyard:compartment: ocid1.compartment.oc1..aaaaaaaavision
  trainyard:tenancy: ocid1.tenancy.oc1..aaaaaaaacompany
  trainyard:access: { users: { group: scientists } }
""",
    "aws-dl1": """\
  aws:region: us-east-1
  trainyard:platform: aws-dl1
  trainyard:access: { users: { group: scientists } }
""",
    "openpai": """\
  trainyard:platform: openpai
  trainyard:cluster: { uri: "https://openpai.example.com", user: vision-bot }
  trainyard:skus: { cpu: { cpus: 8, memoryGb: 16 } }
  trainyard:storage: { name: nfs }
""",
}
_SHAPE = {"oci": "VM.Standard2.8", "aws-dl1": "dl1.24xlarge\n      cluster: { ami: ami-0a1b2c }", "openpai": "cpu"}
_JOB = """\
    {name}:
      framework: {framework}
      image: registry.example.com/train:1.0
      shape: {shape}
      roles: {{ main: 1, worker: 1 }}
      options: {{ processes: 8 }}
      command: train.py
      runs: {{ base: {{}} }}
"""
_PORT = "TY20"


def _codes(folder: Path, platform: str, ports: str, *frameworks: str) -> list[str]:
    head = f"config:\n  trainyard:team: vision\n  trainyard:environment: dev\n{_TOP[platform]}  trainyard:jobs:\n"
    jobs = [_JOB.format(name=name, framework=name, shape=_SHAPE[platform]) for name in frameworks]
    file = folder / "Pulumi.test.yaml"
    file.write_text(head + "".join(jobs) + (f"      ports: {ports}\n" if ports else ""))
    judged = judge_file(file)
    assert judged.stack is not None, judged.findings
    return [one.code for one in judged.findings if one.code.startswith((_PORT, "TY21", "TY887"))]


@pytest.mark.parametrize(("platform", "codes"), [("oci", ["TY205"]), ("aws-dl1", []), ("openpai", ["TY887"])])
def test_a_port_inside_a_range_that_only_oci_has(tmp_path: Path, platform: str, codes: list[str]) -> None:
    assert _codes(tmp_path, platform, "{ rendezvous: 29510 }", "pytorch") == codes


@pytest.mark.parametrize(("platform", "codes"), [("oci", ["TY203"]), ("openpai", ["TY887"])])
def test_a_number_without_effect_is_not_judged(tmp_path: Path, platform: str, codes: list[str]) -> None:
    assert _codes(tmp_path, platform, "{ rendezvous: 80 }", "pytorch") == codes


@pytest.mark.parametrize(("platform", "codes"), [("oci", ["TY206"]), ("openpai", [])])
def test_frameworks_collide_only_where_rules_open_their_ports(tmp_path: Path, platform: str, codes: list[str]) -> None:
    assert _codes(tmp_path, platform, "", "pytorch", "torchrun") == codes
