"""inchworm: a web crawler that never loses its place."""

__version__ = "0.1.0"
