"""The pages under `docs/reference`, made of the code: `make reference` writes them, a test says when one is
stale.

Duty: what the code says of itself, as Markdown. Never in here: words that the code does not have, but for a
sentence or two at the top of a page.

- `messages`   subjects, who may send, messages, streams, out of `podyard.proto` and the table of identities
- `settings`   of every service, out of the Structs, their docstrings and bounds
- `objects`    annotations, labels and signals that Podyard gives a meaning
- `commands`   the command line, out of cyclopts
- `markdown`   rows, lines of 110 columns
"""
