"""What training, search and evaluation share: exit status, failure, lease, samples."""
