"""Remembering without growing: what a process keeps of what came from outside has a bound. The
lowest layer, pure.

Duty: the caches of the house, bounded in bytes or in number, and how much a value takes.
Never in here: knowledge of what is kept.

- `kept`    Kept: what was used last, as much as so many bytes hold
- `latest`  Latest: what was used last, so many of it
- `sizes`   how many bytes a value takes

`docs/memory.md` lists every structure that grows with use, its bound, who evicts, and what a miss costs.
"""
