"""Many sessions on the screen: the desk that lists them, and the look into one of them."""
