# SPDX-License-Identifier: Apache-2.0
"""Calls about users and what they may use: login, tokens, users, virtual clusters, storages."""

from __future__ import annotations

import hmac

from catalog.version import VERSION
from localcloud.openpai import accounts
from localcloud.openpai.accounts import PEOPLE, Person
from localcloud.openpai.rest import Parts, RestCall, parse_call_number
from localcloud.openpai.rest_errors import forbidden_user, no_storage, no_user, no_virtual_cluster, wrong_password
from localcloud.openpai.storages import DEFAULT, storage_folder, storage_names
from localcloud.openpai.tokens import LOGIN_SECONDS
from localcloud.openpai.virtual_clusters import VIRTUAL_CLUSTERS, Resources, VirtualCluster
from localcloud.server.http import Json, Reply

_LOGIN = "openpai.BasicLogin"


def get_server_info(call: RestCall) -> Reply:
    content = {"name": "PAI RESTful API", "version": f"trainyard {VERSION}", "launcherType": "k8s"}
    return Reply(200, {**content, "authnMethod": "basic"})


def log_in(call: RestCall) -> Reply:
    name, password = call.text("username"), call.text("password")
    person = accounts.find_person(name)
    if person is None:
        raise no_user(name)
    expected = accounts.read_accounts(call.parts.home).passwords[name]
    if not hmac.compare_digest(password.encode(), expected.encode()):
        raise wrong_password()
    asked = call.values.get("expiration")
    seconds = parse_call_number(str(asked), "expiration") if asked else LOGIN_SECONDS
    seconds = call.parts.faults.seconds("token", _LOGIN) or seconds
    token = call.parts.tokens.create(name, application=False, seconds=seconds)
    return Reply(200, {"user": name, "token": token, "admin": person.admin, "hasGitHubPAT": False})


def log_out(call: RestCall) -> Reply:
    _require_person(call)
    call.parts.tokens.revoke(call.by.token)
    return Reply(200, {"message": "Logout successfully"})


def list_tokens(call: RestCall) -> Reply:
    _require_person(call)
    return Reply(200, {"tokens": call.parts.tokens.of(call.by.person.name)})


def application_token(call: RestCall) -> Reply:
    _require_person(call)
    token = call.parts.tokens.create(call.by.person.name, application=True)
    return Reply(200, {"token": token, "application": True})


def revoke_token(call: RestCall) -> Reply:
    _require_person(call)
    token, name = call.params["token"], call.by.person.name
    if call.parts.tokens.user_of(token) != name:
        raise forbidden_user(f"User {name} is not allowed to do this operation.")
    call.parts.tokens.revoke(token)
    return Reply(200, {"message": "revoke successfully"})


def check_token(call: RestCall) -> Reply:
    by = call.by
    return Reply(200, {"username": by.person.name, "application": by.application, "admin": by.person.admin})


def list_users(call: RestCall) -> Reply:
    return Reply(200, [_user_view(call.parts, person) for person in PEOPLE])


def get_user(call: RestCall) -> Reply:
    if (person := accounts.find_person(call.params["user"])) is None:
        raise no_user(call.params["user"])
    return Reply(200, _user_view(call.parts, person))


def list_clusters(call: RestCall) -> Reply:
    return Reply(200, {cluster.name: _virtual_cluster_view(call.parts, cluster) for cluster in VIRTUAL_CLUSTERS})


def get_cluster(call: RestCall) -> Reply:
    name = call.params["cluster"]
    cluster = next((each for each in VIRTUAL_CLUSTERS if each.name == name), None)
    if cluster is None:
        raise no_virtual_cluster(name)
    return Reply(200, _virtual_cluster_view(call.parts, cluster))


def list_storages(call: RestCall) -> Reply:
    return Reply(200, {"storages": [_storage_view(name) for name in storage_names(call.parts.home)]})


def get_storage(call: RestCall) -> Reply:
    name = call.params["storage"]
    folder = storage_folder(call.parts.home, name)
    if folder is None:
        raise no_storage(name)
    data = {"server": "127.0.0.1", "path": str(folder)}
    return Reply(200, {**_storage_view(name), "type": "nfs", "data": data, "readOnly": False, "mountOptions": []})


def _require_person(call: RestCall) -> None:
    """Refuses application tokens: this call needs a token from a login."""
    if call.by.application:
        raise forbidden_user("Applications are not allowed to do this operation.")


def _user_view(parts: Parts, person: Person) -> Json:
    return {
        "username": person.name, "email": f"{person.name}@localhost", "admin": person.admin,
        "grouplist": list(person.virtual_clusters), "virtualCluster": list(person.virtual_clusters),
        "storageConfig": storage_names(parts.home), "extension": {},
    }  # fmt: skip


def _storage_view(name: str) -> Json:
    return {"name": name, "share": True, "volumeName": f"{name}-volume", "default": name == DEFAULT}


def _virtual_cluster_view(parts: Parts, cluster: VirtualCluster) -> Json:
    """A virtual cluster with its resources, total and used. Capacities are percentages of all GPUs."""
    total, used = parts.allocations.total(cluster), parts.allocations.used(cluster.name)
    everything = sum(parts.allocations.total(each).gpu for each in VIRTUAL_CLUSTERS)
    share = 100 / everything if everything else 0
    return {
        "capacity": total.gpu * share, "maxCapacity": total.gpu * share, "usedCapacity": used.gpu * share,
        "dedicated": False, "resourcesUsed": _resources_view(used), "resourcesGuaranteed": _resources_view(total),
        "resourcesTotal": _resources_view(total),
    }  # fmt: skip


def _resources_view(each: Resources) -> Json:
    return {"cpu": each.cpu, "memory": each.memory, "gpu": each.gpu, "vCores": each.cpu, "GPUs": each.gpu}
