"""Services, servers and disks harmed for real: one stack and one cluster for the tests that leave them whole (`conftest`)."""
