"""DefaultPreemption."""
