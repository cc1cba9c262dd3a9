"""What hostile or broken clients do to a server, by what they abuse."""
