"""Tables copied from a publisher, another lake or a PostgreSQL server, and kept equal to it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
