"""The commands of `podyard bench`: `app` has the table, `measuring` runs what starts services. Heavy imports
happen when a command runs."""
