"""PodTopologySpread: spreads pods of a kind over zones, hosts or other domains, as evenly as demanded or as
possible."""
