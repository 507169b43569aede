# SPDX-License-Identifier: Apache-2.0
"""The Pulumi SDK's own gRPC classes, without the rest of the SDK.

Importing `pulumi` costs 0.4 s on a busy machine. A plugin or a language host would pay that on every command before it
answers its first call, although it needs only the generated message classes. This package borrows their folder:
`trainyard.engine.protocol.provider_pb2` is the SDK's file.
"""

from importlib.util import find_spec
from pathlib import Path

_pulumi = find_spec("pulumi")
if _pulumi is None or _pulumi.origin is None:
    raise ModuleNotFoundError("The Python package `pulumi` is not installed here; run `make setup`.")

__path__ = [str(Path(_pulumi.origin).parent / "runtime" / "proto")]
