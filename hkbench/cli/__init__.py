"""The command line: arguments, printing, exit codes. The only room that prints."""
