"""What start-up speed costs: the first frame, taking over the terminal, what is mounted later."""
