"""A whole Podyard on one machine: embedded NATS server, supervised services, a state file that other commands
find."""
