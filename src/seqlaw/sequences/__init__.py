"""A user's sequences: source → tally → spectra → exponents → measurement → advice; reading → pilot → forecast."""
