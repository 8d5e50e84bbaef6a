"""One pass: b fresh trajectories a step (docs/one-pass.md). Exact in expectation, no frozen filter."""
