"""NodeAffinity: nodes must have what the pod's nodeSelector and node affinity require; what it prefers
scores."""
