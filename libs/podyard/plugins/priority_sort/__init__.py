"""PrioritySort orders activeQ: priority, then time. Never in here: anything that changes while a pod
waits."""
