# SPDX-License-Identifier: Apache-2.0
"""The common version of package, provider, policy pack and local cloud."""

# pyproject.toml reads it from here. `policies/PulumiPolicy.yaml` repeats it: the engine reads only that file. A test
# holds the two together.
VERSION = "0.2.0"
