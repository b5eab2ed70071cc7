"""Tools offered to others by the MCP protocol."""
