# SPDX-License-Identifier: Apache-2.0
"""A live side as it is collected: which parts could not be read."""

from __future__ import annotations

from dataclasses import replace

from components.platform.calls import ProviderError
from components.platform.live import Reading
from components.platform.review import Snapshot
from tests.support.reviews import resource

VCN = resource("oci:Core/vcn:Vcn", "vcn", cidrBlocks=["10.0.0.0/16"])


def refused() -> object:
    raise ProviderError("ListVcns: no right [request 1]")


def test_a_refused_read_is_recorded_and_the_resource_counts_as_declared() -> None:
    reading = Reading(Snapshot("dev", "oci", {}, (VCN,)), lambda error: True)
    assert reading.side({}).unread == ()
    assert reading.allowed("the vcns", refused) is None
    side = reading.side({})
    assert (side.unread, side.snapshot.resources) == (("the vcns: no right",), (VCN,))


def test_types_at_which_a_drift_does_not_look_are_named() -> None:
    key = resource("aws:kms/key:Key", "key")
    runs = resource("trainyard:index:Run", "run")
    reading = Reading(
        Snapshot("dev", "oci", {}, (VCN, replace(key, id="1"), replace(runs, id="2"))), lambda error: True
    )
    reading.name_unread_types(frozenset({VCN.type}))
    assert reading.side({}).unread == ("1 resource of the type aws:kms/key:Key: a drift does not look at this type",)
