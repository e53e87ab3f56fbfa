"""The steps that strategies share: staging, publishing, reading sources at their versions."""
