"""Notes, reports and blobs in the home their path or audience names: own or the group's."""
