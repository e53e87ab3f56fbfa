"""What runs recorded, for people: facts of a project, how its models fare, and the HTML page that shows it. Knows neither dbt nor Spark."""
