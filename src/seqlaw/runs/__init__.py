"""A user's training runs: table → law → intervals → does a column matter → allocation."""
