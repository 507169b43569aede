# SPDX-License-Identifier: Apache-2.0
"""What a stack file takes as there already, made on a local cloud."""
