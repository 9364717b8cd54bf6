"""Fixtures of all rooms, by the module they come from; and patience with a busy machine."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.databases", "tests.runs.launchers", "tests.web.sites", "tests.web.browsing"]

# By default an example that takes 200 ms fails, and so do examples that are slowly made. On a machine that also runs eight
# ranks, any of them may. A fixture shared by the examples of a test is meant: the site that all of them ask. And the same
# examples come every time, so that a suite that has passed passes again.
settings.register_profile(
    "patient", deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("patient")
