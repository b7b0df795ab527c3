"""Parts of what stands around a core. A service composes those that it needs; none knows any one service.

Duty: feed a core, in order and on the steady clock, and keep one message that breaks it from ending the service.
Never in here: what messages mean, a decision, a base class.

- `driver`    the only caller of a core's `step`: re-entrancy, the loop's timer, the end of a core that raised
- `guard`     the same boundary around a core without a `step`
- `boundary`  what a process remembers of cores that raised: what is set aside, how long to pause, whether it is ready
- `causes`    what a core was told when it raised
"""
