"""Remembering without growing: what a process keeps of what came from outside has a bound in bytes. The
lowest layer, pure.

Duty: the one cache of the house, and how much a value takes.
Never in here: knowledge of what is kept.

- `kept`    Kept: what was used last, as much as so many bytes hold
- `sizes`   how many bytes a value takes

`docs/memory.md` lists every structure that grows with use, its bound, who evicts, and what a miss costs.
"""
