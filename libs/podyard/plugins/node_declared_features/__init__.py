"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes only to nodes that declare it."""
