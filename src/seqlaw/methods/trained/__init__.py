"""Students trained step by step with torch: linear ones and small networks, many side by side."""

from seqlaw.methods.trained.method import Trained

__all__ = ["Trained"]
