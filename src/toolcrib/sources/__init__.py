"""Where tools come from, one file each: whatever has `as_tools()`."""
