"""One pass: b fresh trajectories a step (docs/one-pass-theory.md). Exact in expectation, no frozen filter."""
