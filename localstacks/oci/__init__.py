# SPDX-License-Identifier: Apache-2.0
"""What of a local stack is OCI's: stand-ins for what exists there, what a stack has left, what goes with it."""
