"""Models that share a machine: one experiment for each promise about what they do to each other."""
