"""A user's sequences: reading → moments → spectra → exponents → measure, or pilot → curves → forecast."""
