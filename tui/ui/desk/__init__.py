"""Sessions of other processes on the screen: the desk that lists them, and the live view of one."""
