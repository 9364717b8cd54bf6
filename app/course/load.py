"""Reads lesson folders into a checked Course, or raises CourseError with every fault at once."""
