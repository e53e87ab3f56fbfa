"""What people read about a model and its runs."""
