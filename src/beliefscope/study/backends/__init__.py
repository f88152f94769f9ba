"""Where the pieces of a study are done: interface.py, local.py, ray.py."""
