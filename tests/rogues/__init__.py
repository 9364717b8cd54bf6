"""Strategies that do not send what their name promises. A launch host started with one of them must not say "equal".

Each module takes the place of real strategies in the host it is given to (`--extra-strategies tests.rogues.<name>`).
"""
