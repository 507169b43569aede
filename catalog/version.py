# SPDX-License-Identifier: Apache-2.0
"""The version of all that is released together: package, provider, policy pack, local cloud."""

# pyproject.toml reads it from here. `policies/PulumiPolicy.yaml` repeats it: the engine reads only that file. A test
# holds the two together.
VERSION = "0.2.0"
