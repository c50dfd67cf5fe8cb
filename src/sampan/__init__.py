"""sampan: carry AI inference services to machines that nothing else reaches."""

__version__ = "0.1.0"
