"""All settings, by module: the files (``files``) and sources (``sources``) that they are read from, the allowed values
(``values``), the settings by subject (``sections``), in layers (``layers``) and by name (``names``), loading
(``loading``), the origin of a value (``origin``), and changes in the file (``writing``) and while a process runs
(``live``).
"""
