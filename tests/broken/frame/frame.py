# SPDX-License-Identifier: Apache-2.0
import dask.dataframe  # noqa: F401
