"""NodePorts: the host ports that a pod asks for must be free on its node."""
