"""What every room may use: settings, errors, records, parameters. Imports nothing of the other rooms."""
