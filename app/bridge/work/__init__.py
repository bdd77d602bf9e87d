"""Jobs, schedules, housekeeping: what is done in a store beside requests, and who may ask."""
