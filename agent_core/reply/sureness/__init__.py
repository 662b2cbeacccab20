"""Whether a record answers what a customer wrote, told by code from all of the customer's own words."""
