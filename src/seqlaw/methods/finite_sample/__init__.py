"""The finite-sample law: the risk at any amount of data, beyond the frozen filter (docs/finite-sample.md)."""
