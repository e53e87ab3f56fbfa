"""Answers by the Files and Batches interface of OpenAI-compatible endpoints: cheaper, and hours later.

A batch goes through few states, each written down before the next step is taken (see `state`). Of the machine that takes the
steps (`submit`, `collect`), the warehouse stands behind `store` and the endpoint behind `remote`.
"""
