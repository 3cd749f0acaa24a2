"""What changed in a relation between two points in time, for readers that follow it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
