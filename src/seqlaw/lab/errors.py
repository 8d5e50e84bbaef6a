"""What can go wrong in the lab; every message is one line for a person."""

from __future__ import annotations

from seqlaw.model.checks import SeqlawError


class LabError(SeqlawError):
    """Base of the lab's errors: nothing that was acknowledged is lost when one is raised."""


class StoreError(LabError):
    """The result file cannot be opened, locked, read or written."""


class EngineError(LabError):
    """The workers cannot be started or reached, or run other software than the driver."""
