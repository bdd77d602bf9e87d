-- name: find_account
-- Everything the registry knows of one member.
-- inline: one row by primary key, no big column
SELECT id, username, display_name, role_id, encrypted, kdf_params, kdf_salt, database_password,
  password_hash, dek_id, file_salt, password_is_temporary, pending_dek_id, pending_file_salt,
  lock_number, active, store_state, store_generation, quota_bytes, locale, birthdate, sex, notes,
  store_bytes, last_unlocked_at, created_at, updated_at, version
FROM users WHERE id = :user_id;

-- name: find_account_by_name
-- The same, by the folded username.
-- inline: one row by unique key, no big column
SELECT id, username, display_name, role_id, encrypted, kdf_params, kdf_salt, database_password,
  password_hash, dek_id, file_salt, password_is_temporary, pending_dek_id, pending_file_salt,
  lock_number, active, store_state, store_generation, quota_bytes, locale, birthdate, sex, notes,
  store_bytes, last_unlocked_at, created_at, updated_at, version
FROM users WHERE username_key = :username_key;

-- name: list_accounts
-- Members in order of their making, after a given one.
SELECT id, username, display_name, role_id, encrypted, kdf_params, kdf_salt, database_password,
  password_hash, dek_id, file_salt, password_is_temporary, pending_dek_id, pending_file_salt,
  lock_number, active, store_state, store_generation, quota_bytes, locale, birthdate, sex, notes,
  store_bytes, last_unlocked_at, created_at, updated_at, version
FROM users WHERE id > :after ORDER BY id LIMIT +:limit;

-- name: list_all_accounts
-- Every member; for the janitor and the operator's checks.
-- scan: the janitor compares every row with every file
SELECT id, username, display_name, role_id, encrypted, kdf_params, kdf_salt, database_password,
  password_hash, dek_id, file_salt, password_is_temporary, pending_dek_id, pending_file_salt,
  lock_number, active, store_state, store_generation, quota_bytes, locale, birthdate, sex, notes,
  store_bytes, last_unlocked_at, created_at, updated_at, version
FROM users ORDER BY id;

-- name: count_accounts
-- How many members there are.
-- scan: counts an index; only before set-up
SELECT count(*) AS value FROM users;

-- name: count_administrators
-- How many active administrators there are beside one member.
SELECT count(*) AS value FROM users
WHERE role_id = 'admin' AND active = 1 AND store_state <> 'erasing' AND id <> :user_id;

-- name: find_owner_of_salt
-- The member whose file begins with this salt: tells a swapped file.
-- scan: only when a file does not open
SELECT id AS value FROM users WHERE file_salt = :file_salt;

-- name: add_lock_number
-- A byte offset that no store had before.
INSERT INTO lock_numbers DEFAULT VALUES RETURNING number AS value;

-- name: remove_lock_number
-- The offset stays used; its row is not needed.
DELETE FROM lock_numbers WHERE number = :number;

-- name: add_account
-- Makes the member real; their file is there already.
INSERT INTO users (id, username, username_key, display_name, role_id, encrypted, kdf_params,
  kdf_salt, database_password, password_hash, dek_id, file_salt, password_is_temporary,
  lock_number, created_at, updated_at)
VALUES (:id, :username, :username_key, :display_name, :role_id, :encrypted, :kdf_params,
  :kdf_salt, :database_password, :password_hash, :dek_id, :file_salt, :password_is_temporary,
  :lock_number, :now, :now);

-- name: set_profile
-- Replaces what an administrator may set; guarded by the version that was read.
UPDATE users SET display_name = :display_name, role_id = :role_id, active = :active,
  locale = :locale, birthdate = :birthdate, sex = :sex, notes = :notes,
  quota_bytes = :quota_bytes, updated_at = :now, version = version + 1
WHERE id = :user_id AND version = :version RETURNING version AS value;

-- name: raise_password_cost
-- The same password at a higher cost, unless it was replaced meanwhile.
UPDATE users SET database_password = :database_password, password_hash = :password_hash,
  kdf_params = :kdf_params, kdf_salt = :kdf_salt, updated_at = :now, version = version + 1
WHERE id = :user_id AND coalesce(password_hash, database_password) = :was
RETURNING version AS value;

-- name: set_password_wrap
-- The same data key under a new password.
UPDATE users SET database_password = :database_password, kdf_params = :kdf_params,
  kdf_salt = :kdf_salt, password_is_temporary = 0, updated_at = :now, version = version + 1
WHERE id = :user_id AND database_password = :was RETURNING version AS value;

-- name: set_password_hash
-- A cleartext member's new verifier.
UPDATE users SET password_hash = :password_hash, password_is_temporary = :is_temporary,
  updated_at = :now, version = version + 1
WHERE id = :user_id AND encrypted = 0 AND password_hash IS :was RETURNING version AS value;

-- name: begin_store_state
-- Takes a store out of service: every process lets go of it. Nothing when it is out already.
UPDATE users SET store_state = :store_state, store_generation = store_generation + 1
WHERE id = :user_id AND store_state = 'open' RETURNING store_generation AS value;

-- name: end_store_state
-- Back in service.
UPDATE users SET store_state = 'open', store_generation = store_generation + 1
WHERE id = :user_id AND store_state = :store_state RETURNING store_generation AS value;

-- name: list_moving_stores
-- Stores out of service.
-- scan: walks the index of those alone
SELECT id, username, display_name, role_id, encrypted, kdf_params, kdf_salt, database_password,
  password_hash, dek_id, file_salt, password_is_temporary, pending_dek_id, pending_file_salt,
  lock_number, active, store_state, store_generation, quota_bytes, locale, birthdate, sex, notes,
  store_bytes, last_unlocked_at, created_at, updated_at, version
FROM users WHERE store_state <> 'open' ORDER BY id;

-- name: list_generations
-- State and generation of the given members, a JSON list of ids; one that is gone is left out.
-- scan: json_each reads the list it is given
SELECT users.id, users.store_state, users.store_generation, users.active
FROM json_each(:user_ids) AS wanted JOIN users ON users.id = wanted.value;

-- name: set_pending_key
-- The change of key that is about to be made, before the file is exchanged.
UPDATE users SET pending_database_password = :database_password,
  pending_kdf_params = :kdf_params, pending_kdf_salt = :kdf_salt, pending_dek_id = :dek_id,
  pending_file_salt = :file_salt
WHERE id = :user_id AND store_state = 'rotating' RETURNING version AS value;

-- name: adopt_pending_key
-- The new file stands in its place: its key is the key.
UPDATE users SET database_password = pending_database_password, kdf_params = pending_kdf_params,
  kdf_salt = pending_kdf_salt, dek_id = pending_dek_id, file_salt = pending_file_salt,
  pending_database_password = NULL, pending_kdf_params = NULL, pending_kdf_salt = NULL,
  pending_dek_id = NULL, pending_file_salt = NULL, password_is_temporary = :is_temporary,
  store_state = 'open', store_generation = store_generation + 1, updated_at = :now,
  version = version + 1
WHERE id = :user_id AND store_state = 'rotating' AND pending_dek_id IS NOT NULL
RETURNING version AS value;

-- name: drop_pending_key
-- The old file still stands: nothing happened.
UPDATE users SET pending_database_password = NULL, pending_kdf_params = NULL,
  pending_kdf_salt = NULL, pending_dek_id = NULL, pending_file_salt = NULL,
  store_state = 'open', store_generation = store_generation + 1
WHERE id = :user_id AND store_state = 'rotating' RETURNING version AS value;

-- name: set_store_mirror
-- What the operator may see of a store without opening it.
UPDATE users SET store_bytes = :store_bytes, schema_version = :schema_version,
  schema_check = :schema_check, migration_failed = NULL, last_unlocked_at = :now
WHERE id = :user_id;

-- name: set_store_version
-- A store was brought to this version; what was found of its schema before is out of date.
UPDATE users SET store_bytes = :store_bytes, schema_version = :schema_version,
  schema_check = NULL, migration_failed = NULL
WHERE id = :user_id;

-- name: find_failed_migration
-- The build that could not bring a store up to date.
-- inline: one row by primary key, no big column
SELECT migration_failed AS value FROM users WHERE id = :user_id;

-- name: set_failed_migration
-- Which build failed with a store; NULL lets it be tried again.
UPDATE users SET migration_failed = :build WHERE id = :user_id;

-- name: forget_failed_migrations
-- Every store may be tried again.
-- scan: the operator asks
UPDATE users SET migration_failed = NULL WHERE migration_failed IS NOT NULL RETURNING id AS value;

-- name: list_fleet
-- Members' stores in order of their making, after a given one: what is known of each unopened.
SELECT id, username, encrypted, active, store_state, schema_version, schema_check,
  migration_failed, store_bytes, last_unlocked_at, lock_number
FROM users WHERE id > :after ORDER BY id LIMIT +:limit;

-- name: count_fleet
-- How many stores are alike in what is known of them unopened.
-- scan: the operator asks
SELECT encrypted, schema_version, schema_check, migration_failed, count(*) AS stores
FROM users GROUP BY encrypted, schema_version, schema_check, migration_failed;

-- name: find_work_times
-- Since when work waits for a locked store, and when its next is due.
-- inline: one row by primary key, no big column
SELECT work_waiting_since, next_due_at FROM users WHERE id = :user_id;

-- name: set_work_times
-- What a store that is being locked leaves undone; NULL and NULL once it is unlocked.
UPDATE users SET work_waiting_since = :work_waiting_since, next_due_at = :next_due_at
WHERE id = :user_id;

-- name: list_plain_due
-- Members' plain stores that nothing keeps shut, and in which work is due.
-- scan: once in a while, and the members of a group are few
SELECT id AS value FROM users
WHERE encrypted = 0 AND active = 1 AND store_state = 'open' AND next_due_at <= :now LIMIT +:limit;

-- name: remove_account
-- The member is gone; slots, sessions and edges go with the row.
DELETE FROM users WHERE id = :user_id AND store_state = 'erasing' RETURNING id AS value;
