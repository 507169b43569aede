# SPDX-License-Identifier: Apache-2.0
"""All kinds of capabilities that a platform may have."""

from __future__ import annotations

from catalog.platforms import Capability
from components.plan.documents import PlanDocuments
from components.plan.platform import AccessReporting, Deployment, Planning
from components.platform.client import RunClients
from components.platform.existing import ExistingResources
from components.platform.files import StoreOpeners
from components.platform.images import PlatformImages
from components.platform.inputs import OwnInputs
from components.platform.live import LiveReading
from components.platform.local import LocalPlatform
from components.platform.new_stacks import NewStacks
from components.platform.owned import OwnedResources
from components.platform.prerequisites import Prerequisites
from components.platform.rehearsal import RehearsalPlatform
from components.platform.review import OfflineCloud, ReviewPlatform
from schemas.stack_file import StackChecks, StackFile

KINDS: tuple[type[Capability], ...] = (
    StackFile, StackChecks, Planning, PlanDocuments, AccessReporting, Deployment, RunClients, OwnInputs,
    StoreOpeners, PlatformImages, LocalPlatform, RehearsalPlatform, ReviewPlatform, OfflineCloud, LiveReading,
    NewStacks, ExistingResources, Prerequisites, OwnedResources,
)  # fmt: skip
