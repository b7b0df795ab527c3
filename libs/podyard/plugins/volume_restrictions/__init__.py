"""VolumeRestrictions: pods may not share a disk that cannot be shared, nor a claim that is for one pod only
(ReadWriteOncePod)."""
