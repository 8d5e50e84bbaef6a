"""Teacher or measurement, and budgets, to plain words; and whether it predicts held-out data."""
