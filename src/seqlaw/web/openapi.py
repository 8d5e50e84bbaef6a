"""The OpenAPI document of the explorer, with the ranges that the library itself holds its numbers to."""

from __future__ import annotations

from typing import Any

_NOT_NEGATIVE, _ABOVE_ZERO = {"minimum": 0.0}, {"exclusiveMinimum": 0.0}
_FRACTION = {"exclusiveMinimum": 0.0, "exclusiveMaximum": 1.0}
_COUNT = {"minimum": 1.0, "multipleOf": 1.0}
RANGES: dict[str, dict[str, dict[str, float]]] = {
    "Teacher": {
        "alpha": _NOT_NEGATIVE,
        "theta": _NOT_NEGATIVE,
        "r": _NOT_NEGATIVE,
        "rho": _FRACTION,
        "c_xi": _ABOVE_ZERO,
        "c_0": _ABOVE_ZERO,
    },
    "Budget": {
        "compute": _ABOVE_ZERO,
        "tokens": _ABOVE_ZERO,
        "max_M": _COUNT,
        "max_N": _COUNT,
        "max_P": _COUNT,
        "max_L": _COUNT,
        "min_P": _COUNT,
    },
    "ScheduleBody": {
        "gamma": _ABOVE_ZERO,
        "warmup": _FRACTION,
        "decay": _FRACTION,
        "beta": {"minimum": 0.0, "exclusiveMaximum": 1.0},
        "R": _ABOVE_ZERO,
    },
}
"""The library's own rules, for readers of the OpenAPI document; a test holds them to what it accepts."""


def document(openapi: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI document with the library's ranges written in."""
    for name, schema in openapi["components"]["schemas"].items():
        properties = schema.get("properties", {})
        for field, limits in RANGES.get(name.partition("-")[0], {}).items():  # old FastAPI's Teacher-Input
            numbers = properties[field].get("anyOf", [properties[field]])
            next(part for part in numbers if part.get("type") == "number").update(limits)
    return openapi
