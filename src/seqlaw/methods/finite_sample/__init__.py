"""The law at any amount of data (docs/finite-sample.md)."""
