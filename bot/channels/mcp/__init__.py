"""The GUI-MCP server: phones as tools for other programs. Import it only when needed: it loads the ``mcp`` SDK."""
