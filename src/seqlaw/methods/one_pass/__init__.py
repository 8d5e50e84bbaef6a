"""One pass: b fresh trajectories a step (docs/one-pass-theory.md). No frozen filter; the error is stated."""
