"""VolumeBinding: bound claims decide where a pod can go; unbound ones get their volume with it, on its node,
in the same commit."""
