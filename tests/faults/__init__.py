"""Services, servers and disks harmed for real: one stack, one cluster, for tests that leave them whole."""
