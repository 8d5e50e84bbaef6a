"""A climate field: 240 annual means of air temperature over North America, one recording.

Needs, beside seqlaw, the field that the package iris-sample-data carries, and h5py to read it:
    pip install iris-sample-data h5py
    python examples/forecast_climate.py
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import h5py
import iris_sample_data
import numpy as np

from seqlaw import forecast


def main() -> None:
    file = Path(iris_sample_data.path) / "E1_north_america.nc"
    with h5py.File(file) as held:
        field = np.array(held["air_temperature"], dtype=np.float64).reshape(240, -1)
    print(f"iris-sample-data {version('iris-sample-data')}: {field.shape[0]} years, {field.shape[1]} places")
    print(forecast(field, window=6, student="pca", M=6))


if __name__ == "__main__":
    main()
