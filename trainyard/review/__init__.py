# SPDX-License-Identifier: Apache-2.0
"""Reviews a change of stacks before it is deployed: records both sides without a cloud, and compares them."""
