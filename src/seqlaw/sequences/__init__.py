"""A user's sequences: source → tally → spectra → exponents → measurement; then advice and a held-out check."""
