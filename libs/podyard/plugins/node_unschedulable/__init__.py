"""NodeUnschedulable: cordoned nodes take no pod that does not tolerate it."""
