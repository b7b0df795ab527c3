"""A pod's story: every attempt, what woke it and what did not, the binding, the start. Gathered, then put together purely."""
