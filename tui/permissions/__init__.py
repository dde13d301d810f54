"""Who may do what: policy is data, the risk of a command is read from its syntax."""
