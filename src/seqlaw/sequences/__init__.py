"""A user's sequences: source → tally → spectra → exponents → advice; reading → pilot → law → forecast."""
