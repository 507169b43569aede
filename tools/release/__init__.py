# SPDX-License-Identifier: Apache-2.0
"""Makes the release that a team unpacks beside its repository. `make dist` is its only user."""
