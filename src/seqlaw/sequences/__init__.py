"""A user's sequences: source → tally → spectra → exponents → measurement; then advice, and a check of it."""
