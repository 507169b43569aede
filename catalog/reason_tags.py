# SPDX-License-Identifier: Apache-2.0
"""The tags with which a resource says why it is opened wider than usual. trainyard sets them from the stack's modes and
choices, people and auditors see them in the console, and the policy pack judges the reason.

A stack file cannot set them itself (TY612): one line would be a reason for everything in the stack.
"""

# Names of frameworks that need every port, or the mode in which everything is open.
ALL_TCP = "all-tcp"
# Frameworks of other stacks for which something is open.
OPENED_FOR = "opened-for"
# For whom a rule of AWS lets in others than nodes.
OPEN_PORT = "open-port"
PUBLIC_ADDRESS = "public-address"
TENANCY_WIDE = "tenancy-wide"
WILDCARD_POLICIES = "wildcard-policies"
# What a job without runs would start: `nodes=4 ports=29400,29500-29563`; `ports=all` for every one.
LAUNCH = "launch"

PROOF_OF_CONCEPT = "proof-of-concept"
REASON_TAGS = (ALL_TCP, OPENED_FOR, OPEN_PORT, PUBLIC_ADDRESS, TENANCY_WIDE, WILDCARD_POLICIES, LAUNCH)
