# SPDX-License-Identifier: Apache-2.0
"""A live side as it is collected: what could not be read, and whether anything could."""

from __future__ import annotations

from components.platform.calls import ProviderError
from components.platform.live import Reading
from components.platform.review import Snapshot
from tests.support.reviews import resource

VCN = resource("oci:Core/vcn:Vcn", "vcn", cidrBlocks=["10.0.0.0/16"])


def refused() -> object:
    raise ProviderError("ListVcns: no right [request 1]")


def test_who_may_read_no_declared_resource_is_blind_and_who_may_read_one_is_not() -> None:
    reading = Reading(Snapshot("dev", "oci", {}, (VCN,)), lambda error: True)
    assert not reading.side({}).blind, "nothing was refused"
    assert reading.allowed("the vcns", refused) is None
    assert (reading.side({}).blind, reading.side({}).unread) == (True, ("the vcns: no right",))
    reading.found(VCN, VCN.inputs)
    assert not reading.side({}).blind
