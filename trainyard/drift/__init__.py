# SPDX-License-Identifier: Apache-2.0
"""Whether a stack still is what its last `up` made: its cloud now, against what it declared."""
