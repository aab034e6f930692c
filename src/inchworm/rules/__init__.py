"""Pure decisions: values in, values out. No clock, network, database, randomness or logging."""
