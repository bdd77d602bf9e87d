-- name: add_webhook
-- A new one, enabled from its first moment.
INSERT INTO sys_subscriptions (id, kind, url, secret, event_types, include_content, description,
  made_by, created_at, updated_at)
VALUES (:id, 'webhook', :url, :secret, :event_types, :include_content, :description, :made_by,
  :now, :now);

-- name: count_webhooks
-- How many one member has here.
-- scan: a store has few of them
SELECT count(*) AS value FROM sys_subscriptions WHERE kind = 'webhook' AND made_by = :made_by;

-- name: list_webhooks
-- One member's, in the order of their making.
SELECT id, url, event_types, include_content, enabled, disabled_reason, description, made_by,
  created_at, updated_at, version FROM sys_subscriptions
WHERE kind = 'webhook' AND made_by = :made_by AND id > :after ORDER BY id LIMIT +:limit;

-- name: find_webhook
-- One member's own.
SELECT id, url, event_types, include_content, enabled, disabled_reason, description, made_by,
  created_at, updated_at, version FROM sys_subscriptions
WHERE id = :id AND kind = 'webhook' AND made_by = :made_by;

-- name: set_webhook
-- All that may be changed of one.
UPDATE sys_subscriptions SET url = :url, event_types = :event_types,
  include_content = :include_content, description = :description, enabled = :enabled,
  disabled_reason = iif(enabled = :enabled, disabled_reason, NULL), updated_at = :now, version = version + 1
WHERE id = :id RETURNING id AS value;

-- name: set_webhook_secret
-- A new secret; the old one signs as well until its time.
UPDATE sys_subscriptions SET old_secret = secret, old_secret_until = :until, secret = :secret,
  updated_at = :now, version = version + 1
WHERE id = :id RETURNING id AS value;

-- name: disable_subscription
-- For a reason; nothing when it was off already.
UPDATE sys_subscriptions SET enabled = 0, disabled_reason = :reason, updated_at = :now,
  version = version + 1
WHERE id = :id AND enabled = 1 RETURNING id AS value;

-- name: remove_webhook
-- With every delivery that it was owed.
DELETE FROM sys_subscriptions WHERE id = :id RETURNING id AS value;

-- name: list_subscribers
-- Who is told of events.
SELECT id, name, url FROM sys_subscriptions WHERE enabled = 1 ORDER BY id;

-- name: find_target
-- What a delivery needs of its subscriber; nothing while that is off.
SELECT id, kind, name, url, secret, old_secret, old_secret_until, include_content, made_by
FROM sys_subscriptions WHERE id = :id AND enabled = 1;

-- name: list_internal
-- The parts of the program that are told.
-- scan: a store has few of them
SELECT id, name, event_types, enabled FROM sys_subscriptions WHERE kind = 'internal';

-- name: set_internal
-- One of them, as the program declares it now.
INSERT INTO sys_subscriptions (id, kind, name, event_types, made_by, created_at, updated_at)
VALUES (:id, 'internal', :name, :event_types, 'strongroom', :now, :now)
ON CONFLICT (name) DO UPDATE SET event_types = :event_types, enabled = 1, disabled_reason = NULL,
  updated_at = :now, version = version + 1;
