"""Golden cases: worked numbers, run through the functions that training uses."""
