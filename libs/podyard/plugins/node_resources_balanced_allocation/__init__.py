"""NodeResourcesBalancedAllocation."""
