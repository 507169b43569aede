# SPDX-License-Identifier: Apache-2.0
"""What of a stack on the local cloud is AWS's: stand-ins, what goes with a stack, and its part of a rehearsal."""
