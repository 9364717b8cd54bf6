"""Course: the files in lessons/ become checked objects, HTML and graded answers."""
