"""`python -m tinyeval` is the command `tinyeval`."""

from tinyeval.cli import main

main()
