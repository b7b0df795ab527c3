"""VolumeZone: a pod goes where the zones and regions are that the labels of its bound volumes name."""
