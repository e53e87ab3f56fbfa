from spark_mv import __version__ as version

__all__ = ["version"]
