"""The main job, once, on small real text: see `__main__.py`."""
