"""The paper's experiments and the report on them."""
