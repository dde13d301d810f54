"""Ways from one session to another: open, resume, choose, repair, leave, and reports on one."""
