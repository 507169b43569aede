"""Distributed training of boosted trees with XGBoost's interface for Dask."""

import dask.array as da
import xgboost as xgb
from dask.distributed import Client
from xgboost import dask as dxgb


def main(client):
    rng = da.random.default_rng(1)
    X = rng.random((4000, 20), chunks=(500, 20))
    y = (X[:, 0] + X[:, 1] > 1).astype("int32")
    dtrain = dxgb.DaskDMatrix(client, X, y)
    output = dxgb.train(
        client,
        {"tree_method": "hist", "objective": "binary:logistic", "eval_metric": "logloss"},
        dtrain,
        num_boost_round=10,
        evals=[(dtrain, "train")],
    )
    output["booster"].save_model("model.json")
    prediction = dxgb.predict(client, output["booster"], dtrain)
    print("Evaluation history:", output["history"]["train"]["logloss"][-1], "of", len(prediction), "rows")


if __name__ == "__main__":
    with Client() as client:
        print("XGBoost", xgb.__version__)
        main(client)
