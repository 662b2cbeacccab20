"""Every setting: where it is written (``files``, ``sources``), what a value may be (``values``), by subject
(``sections``), in layers (``layers``), by name (``names``), read (``loading``), told where it comes from (``origin``),
changed in the file (``writing``) and while we run (``live``).
"""
