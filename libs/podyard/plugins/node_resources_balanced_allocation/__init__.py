"""NodeResourcesBalancedAllocation: nodes whose resources are used alike score higher."""
