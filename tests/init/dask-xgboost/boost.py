# SPDX-License-Identifier: Apache-2.0
import dask.array as da
import xgboost
from dask.distributed import Client

if __name__ == "__main__":
    with Client() as client:
        inputs, labels = da.random.random((1000, 4)), da.random.randint(0, 2, 1000)
        table = xgboost.dask.DaskDMatrix(client, inputs, labels)
        xgboost.dask.train(client, {"objective": "binary:logistic"}, table, num_boost_round=4)
