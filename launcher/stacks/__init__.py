# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a node are: their stacks, when a run fails or hangs, or when somebody asks."""
