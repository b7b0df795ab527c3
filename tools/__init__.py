"""What only the Makefile runs: it makes files that are committed. Never in here: anything that the product or
its tests import."""
