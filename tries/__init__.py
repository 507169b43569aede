# SPDX-License-Identifier: Apache-2.0
"""One quick try: starts what is deployed once more, with other arguments, without touching the stack's state."""
