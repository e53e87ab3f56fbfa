"""What dbt sees: the adapter class, credentials, relations, catalogue, contracts, seeds."""
