"""Providers of answers: one class each behind `spark_mv.ai.protocol.Provider`."""
