"""Many runs of any function of a dict and a seed."""
