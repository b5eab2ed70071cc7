"""Tools of MCP servers, each server with one owner."""
