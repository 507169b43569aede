# SPDX-License-Identifier: Apache-2.0
"""A folder for PYTHONPATH. It has nothing that a team could import in place of its own modules."""
