"""Property tests played on and on, each round with plays that nobody has seen.

`make test` plays the same each time. This looks for what those plays miss; what it finds becomes a test of
its own, with the play written out in the test's own words.

- `rounds`  one run of all property tests with one seed, told event by event
- `telling`  the pytest plugin that tells
- `finding`  a failing play, kept in a file
"""
