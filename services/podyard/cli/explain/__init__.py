"""What the bus holds about one pod, gathered: `podyard.telling` makes a story of it."""
