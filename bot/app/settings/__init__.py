"""All settings, by module: the files that they are read from (``files``), the allowed values (``values``), the settings
by subject (``sections``), in layers with their sources (``layers``) and by name (``names``), the secrets among them
(``masking``), loading (``loading``), the origin of a value (``origin``), and changes in the file (``writing``).
"""
