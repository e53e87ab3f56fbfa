"""Starting and holding Spark: Java, jars, settings, class archive, progress."""
