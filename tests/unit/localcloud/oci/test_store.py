# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.oci.ocids import fixed_ocid, new_ocid
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.api_errors import ApiError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore(tmp_path / "state.sqlite3")
    yield opened
    opened.close()


def _resource(identifier: str, kind: str = "vcn", **body: object) -> StoredResource:
    return StoredResource(identifier, kind, "compartment", identifier, "AVAILABLE", body)


def test_an_added_resource_can_be_read(store: StateStore) -> None:
    added = store.add(_resource("ocid1.a", tags={"ü": [1]}))
    assert store.get("ocid1.a") == added


def test_a_change_has_a_new_etag(store: StateStore) -> None:
    added = store.add(_resource("ocid1.a"))
    changed = store.put(added, state="UPDATING")
    assert changed.etag != added.etag
    with pytest.raises(ApiError) as stale:
        changed.require_etag(added.etag)
    assert stale.value.status == 412
    changed.require_etag(changed.etag)


def test_a_failed_transaction_leaves_nothing(store: StateStore) -> None:
    def fail() -> None:
        with store.transaction():
            store.add(_resource("ocid1.a"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.get("ocid1.a") is None


def test_mentions_are_updated_with_bodies(store: StateStore) -> None:
    holder = store.add(_resource("ocid1.subnet", "subnet", lists=["ocid1.a", {"deep": "ocid1.b"}]))
    assert store.mentioning("ocid1.b", ("subnet",)) == [holder]
    assert store.mentioning("ocid1.b", ("vcn",)) == []
    store.put(holder, body={})
    assert store.mentioning("ocid1.a", ("subnet",)) == []
    store.put(holder, live=False)
    assert store.mentioning("ocid1.b", ("subnet",)) == []


def test_a_transition_ends_at_its_time() -> None:
    settled = _resource("ocid1.a")
    assert settled.shown_state == "AVAILABLE"
    under_way = StoredResource(
        "i", "vcn", "c", "n", "AVAILABLE", {}, settling="PROVISIONING", settles_at=http.current_moment() + 60
    )
    assert under_way.shown_state == "PROVISIONING"


def test_ocids_look_like_ocids() -> None:
    made = new_ocid("vcn", "iad")
    assert made.startswith("ocid1.vcn.oc1.iad.aaaaaaaa")
    assert made != new_ocid("vcn", "iad")
    assert fixed_ocid("compartment", "x", "iad") == fixed_ocid("compartment", "x", "iad")
    assert fixed_ocid("compartment", "x", "iad").startswith("ocid1.compartment.oc1..")
