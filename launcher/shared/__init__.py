# SPDX-License-Identifier: Apache-2.0
"""A folder that all nodes of a run mount, or that lies on the one machine they share."""
