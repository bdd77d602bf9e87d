"""One owner's content, the same in every file that has it. Never a registry table."""
