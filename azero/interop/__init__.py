"""Exchange with other programs: their networks as ours, ours as theirs."""
