"""Papers: what a bundle is made of, for those who must approve it or search it for known faults."""
