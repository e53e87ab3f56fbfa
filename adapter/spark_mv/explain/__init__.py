"""What a run would do and why, as text for people and as JSON."""
