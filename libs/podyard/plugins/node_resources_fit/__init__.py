"""NodeResourcesFit: the node has room for what the pod requests; how full it gets makes the score, by one of
three strategies."""
