"""What people see, who may see it, and what is stored."""
