# SPDX-License-Identifier: Apache-2.0
"""What runs are doing: states by rank, progress, what failed first. Each platform's folder looks for itself."""
