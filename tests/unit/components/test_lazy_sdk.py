# SPDX-License-Identifier: Apache-2.0
"""A lazy package has the same names as the SDK's, and imports only the modules of the names that are used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Of each kind: a class, a function in another's module, one that is called as its module, a module.
NAMES = ("Vcn", "get_services_output", "get_services", "RouteTable", "outputs")
PROGRAM = f"""
import importlib, json, sys
import pulumi_oci as oci
from components.oci.resources.context import make_oci_sdk_lazy

def modules():
    return len([name for name in sys.modules if name.startswith("pulumi_oci.core.")])

make_oci_sdk_lazy()
lazy = {{name: getattr(oci.core, name) for name in {NAMES}}}
few, missing = modules(), hasattr(oci.logging, "Nothing")
oci.core.SubnetArgs, oci.core.SecurityListIngressSecurityRuleArgs
whole = oci.core
print(json.dumps({{
    "few": few, "all": modules(), "missing": missing, "still": hasattr(oci.logging, "LogGroup"),
    "same": [name for name, value in lazy.items() if getattr(whole, name) is value],
    "kinds": [type(value).__name__ for value in lazy.values()],
}}))
"""


def test_a_name_imports_its_own_module_and_is_the_one_that_is_shipped() -> None:
    """Also if the whole package is imported later, for a name without a module of its own."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    assert answer["few"] < 10 < 200 < answer["all"]
    assert answer["same"] == list(NAMES)
    assert answer["kinds"] == ["type", "function", "function", "type", "module"]
    assert (answer["missing"], answer["still"]) == (False, True)
