"""The three measured spectra with their fits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seqlaw.measuring.exponents import LAWS
from seqlaw.measuring.measure import Measurement
from seqlaw.plot import MARKERS, SERIES, new_figure, save, tidy

_TITLES = {
    "innovation": "innovation (residual covariance)",
    "initial": "initial (first states)",
    "transition": "transition (symmetrised, whitened)",
}
_SYMBOLS = {"alpha": "α", "theta": "θ", "r": "r"}


def draw_spectra(measurement: Measurement, path: str | Path) -> None:
    """Sorted eigenvalues against their index: measured (light), corrected, and the law over its window."""
    figure, axes = new_figure(11, 3.6, columns=3)
    for k, (name, (exponent, scale)) in enumerate(LAWS.items()):
        panel, spectrum = axes[0][k], measurement.spectra.named(name)
        j = np.arange(1, spectrum.raw.size + 1)
        for values, alpha, label in ((spectrum.raw, 0.3, "measured"), (spectrum.values, 1.0, "corrected")):
            shown = (values > 1e-10 * spectrum.raw[0]) & ((j <= spectrum.trusted) | (label == "measured"))
            panel.plot(
                j[shown], values[shown], MARKERS[k], color=SERIES[k], alpha=alpha, markersize=2.5, label=label
            )
        fitted, height = getattr(measurement, exponent), getattr(measurement, scale)
        title = _TITLES[name]
        if fitted.value is not None:
            x = np.array(measurement.window[exponent], dtype=float)
            panel.plot(x, height.value * x**-fitted.value, color="#000000", linewidth=1.4, label="law")
            interval = "" if fitted.low is None else f" [{fitted.low:.2f}, {fitted.high:.2f}]"
            title += f"\n{_SYMBOLS[exponent]} = {fitted.value:.2f}{interval}"
        tidy(panel, "index j", "eigenvalue", title)
        panel.legend(frameon=False, fontsize=7)
    save(figure, path)
