"""The verdict on a SELECT: scopes, levels with cause and place, orders, rules."""
