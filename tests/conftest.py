"""Fixtures of all rooms, by the module they come from."""

pytest_plugins = ["tests.databases", "tests.runs.launchers", "tests.web.sites"]
