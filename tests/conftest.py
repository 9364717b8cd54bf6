"""Fixtures of all rooms, by the module they come from; and patience with a busy machine."""

from hypothesis import settings

pytest_plugins = ["tests.databases", "tests.runs.launchers", "tests.web.sites"]

# By default an example that takes 200 ms fails. On a machine that also runs eight ranks, any example may.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
