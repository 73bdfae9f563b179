"""What people read: results.json, tables, the live display."""
