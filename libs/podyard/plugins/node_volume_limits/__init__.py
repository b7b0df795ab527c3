"""NodeVolumeLimits: a node takes no more volumes of a CSI driver than its CSINode allows."""
