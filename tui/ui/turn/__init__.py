"""What stands beside an open conversation: what it asks of the program, what runs and what waits,
how calls and answers are drawn, drafts, attachments, the person's own commands, trouble, and the
word that somebody is needed."""
