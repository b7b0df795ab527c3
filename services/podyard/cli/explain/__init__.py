"""What the bus holds about a pod, a workload or a node, gathered: `podyard.telling` makes a story of it."""
