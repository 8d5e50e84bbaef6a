"""From real sequences to exponents: source → tally → spectra → power laws → Measurement."""
