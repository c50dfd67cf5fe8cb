"""``python -m sampan``: what the bundle's launcher starts."""

from sampan.cli.main import main

main()
