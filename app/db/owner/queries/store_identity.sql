-- name: find_identity
-- Whose file this is; nothing in one that was never finished.
-- inline: one small row by primary key
SELECT owner_id, dek_id, epoch, format, path_key, created_at FROM store_identity WHERE place = 1;

-- name: set_identity
-- Makes the file this owner's, or names its new key; nothing when it is another owner's.
INSERT INTO store_identity (place, owner_id, dek_id, epoch, format, path_key, created_at)
VALUES (1, :owner_id, :dek_id, :epoch, :format, :path_key, :now)
ON CONFLICT (place) DO UPDATE SET dek_id = :dek_id WHERE store_identity.owner_id = :owner_id
RETURNING owner_id AS value;
