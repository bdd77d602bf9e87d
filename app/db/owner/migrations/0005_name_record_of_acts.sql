-- Which session or key somebody else ended.

ALTER TABLE account_acts ADD COLUMN record_id TEXT; -- bare; NULL: copied before it was kept
