"""Lengths that change in phases, given sketches (docs/lengths.md)."""
