"""The text of a SELECT: parsed, with the place of each piece, and edited without touching the rest."""
