"""Contextual word representations pretrained with continuous outputs (ELMo-C): load a
model and use it.

    from elmoc import ElmoC
    elmo = ElmoC.from_pretrained("runs/quickstart/run")
    states = elmo.embed(["The", "cat", "sat", "."])  # a tensor [L + 1, n, 2P]
"""

import lazy_loader

from elmoc.version import VERSION as __version__

# Modules are imported when their names are first used, so that commands are quick; the
# names stand in `__init__.pyi`.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
