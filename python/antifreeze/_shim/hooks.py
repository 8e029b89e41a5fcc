"""What the script has asked to be called."""

# Saves the run, and may return where.
on_checkpoint = None
