"""What the services do now, from what they say of themselves: their /metrics and the queue's counts.

Duty: read, subtract, divide. Never in here: a figure that no service offers, a guess for one that did not
answer.
"""
