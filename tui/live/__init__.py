"""What stands beside an open conversation: what it asks of the program, drafts, attachments,
the person's own commands, trouble, and the word that somebody is needed."""
