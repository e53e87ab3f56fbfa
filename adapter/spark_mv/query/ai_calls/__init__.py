"""AI calls taken out of a SELECT: places, requests, keys, signatures."""
