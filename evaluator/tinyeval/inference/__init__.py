"""Asking: run folders, journals, prompts that fit, and the scheduler."""
