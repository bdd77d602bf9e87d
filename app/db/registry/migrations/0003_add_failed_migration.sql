-- A store that this build could not bring up to date is not tried at each request again.

ALTER TABLE users ADD COLUMN migration_failed TEXT; -- the build that failed; NULL: none did
