# SPDX-License-Identifier: Apache-2.0
"""Makes the release archive that a team unpacks next to its repository. Used by `make dist`."""
