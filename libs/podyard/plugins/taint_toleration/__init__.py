"""TaintToleration: nodes take no pod that does not tolerate their taints; soft taints cost points."""
