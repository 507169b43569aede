import dask.array as da
from xgboost import dask as dxgb
