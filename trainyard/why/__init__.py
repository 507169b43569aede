# SPDX-License-Identifier: Apache-2.0
"""Why a run failed or hangs: evidence is collected, and judged without any cloud."""
