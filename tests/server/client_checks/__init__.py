"""What unmodified clients ask of a server, by the part of the protocol that they use."""
