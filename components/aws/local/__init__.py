# SPDX-License-Identifier: Apache-2.0
"""The AWS part of stacks on the local cloud: stand-ins, removal, and rehearsals."""
