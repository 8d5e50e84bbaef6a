"""`python -m seqlaw`."""

from seqlaw.cli import main

main()
