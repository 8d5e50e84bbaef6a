"""Budgets: the corollary, the program in exponents, the finite optimum, longer or more."""
