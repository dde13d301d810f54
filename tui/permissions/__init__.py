"""Permissions: policy is data, and the risk of a command is read from its syntax."""
