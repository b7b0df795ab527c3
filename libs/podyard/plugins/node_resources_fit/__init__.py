"""NodeResourcesFit: the node has room for what the pod requests; emptier nodes score higher."""
