"""What answers are worth: scoring of journals and their statistics."""
