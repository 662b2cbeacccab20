"""The GUI-MCP server: phones as tools for other programs. Imported only where it is used: it loads the ``mcp`` SDK."""
