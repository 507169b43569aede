# SPDX-License-Identifier: Apache-2.0
"""Who submits the jobs of a rehearsal: a plain user of the local cluster, who administers nothing."""

from __future__ import annotations

from dataclasses import dataclass

from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.storages import Storages, storages_folder
from components.openpai.local.sessions import USER, runs_of
from components.platform.local_cloud import LocalCloud
from components.platform.rehearsed_runs import People


@dataclass(frozen=True)
class ClusterUser:
    """The `session` of People: runs in the user's name, and what the user sees on the cluster's storages."""

    runs: OpenPaiRunPlatform
    storages: Storages

    @property
    def name(self) -> str:
        return self.runs.session.user


def people_of(cloud: LocalCloud) -> People:
    user = ClusterUser(runs_of(cloud, USER), Storages(storages_folder(cloud.home)))
    return People(user, f"the cluster's user {USER}, who administers nothing", USER)
