-- name: list_due
-- What of one subscriber may be tried now, the longest due first.
SELECT id AS value FROM sys_deliveries
WHERE subscription_id = :subscription_id AND finished_at IS NULL AND is_waiting = 0
  AND held_since IS NULL AND coalesce(lease_until, next_attempt_at) <= :now
ORDER BY coalesce(lease_until, next_attempt_at), event_seq LIMIT +:limit;

-- name: claim_delivery
-- A try begins: its lease is taken, and it counts; nothing when another process was first.
UPDATE sys_deliveries SET status = 'running', attempts = attempts + 1, lease_owner = :owner,
  lease_until = :until, generation = generation + 1, version = version + 1
WHERE id = :id AND finished_at IS NULL AND is_waiting = 0 AND held_since IS NULL
  AND coalesce(lease_until, next_attempt_at) <= :now
RETURNING id, event_seq, subscription_id, attempts, generation;

-- name: find_owed
-- What is told: the event as it was.
SELECT event_seq, event_id, occurred_at, type, entity_type, entity_id, audience, payload, encoding,
  trace_id, depth FROM sys_outbox WHERE event_seq = :event_seq;

-- name: finish_delivery
-- A try ends it; nothing when its claim was lost.
UPDATE sys_deliveries SET status = :status, finished_at = :now, last_failure = :last_failure,
  last_status = :last_status, lease_owner = NULL, lease_until = NULL, connection = NULL,
  version = version + 1
WHERE id = :id AND generation = :generation AND status = 'running' RETURNING id AS value;

-- name: delay_delivery
-- A try failed, and there will be another; nothing when its claim was lost.
UPDATE sys_deliveries SET status = 'retry', next_attempt_at = :next_attempt_at,
  last_failure = :last_failure, last_status = :last_status, lease_owner = NULL, lease_until = NULL,
  version = version + 1
WHERE id = :id AND generation = :generation AND status = 'running' RETURNING id AS value;

-- name: release_delivery
-- A try was broken off from our side and does not count; nothing when its claim was lost.
UPDATE sys_deliveries SET status = iif(attempts > 1, 'retry', 'pending'),
  attempts = attempts - 1, lease_owner = NULL, lease_until = NULL, version = version + 1
WHERE id = :id AND generation = :generation AND status = 'running' RETURNING id AS value;

-- name: hold_delivery
-- Its breaker is open: it waits for that, untried; nothing when another process was first.
UPDATE sys_deliveries SET status = 'held', connection = :connection, held_since = :now,
  lease_owner = NULL, lease_until = NULL, generation = generation + 1, version = version + 1
WHERE id = :id AND finished_at IS NULL AND is_waiting = 0 AND held_since IS NULL
  AND coalesce(lease_until, next_attempt_at) <= :now RETURNING id AS value;

-- name: hold_failed
-- Its try failed and its breaker is open: it waits for that, and for its own time.
UPDATE sys_deliveries SET status = 'held', connection = :connection, held_since = :now
WHERE id = :id AND status = 'retry' RETURNING id AS value;

-- name: release_subscription
-- Its webhook was changed: no breaker of the old address holds it.
UPDATE sys_deliveries SET status = iif(attempts > 0, 'retry', 'pending'), connection = NULL,
  held_since = NULL, version = version + 1
WHERE subscription_id = :subscription_id AND finished_at IS NULL AND status = 'held'
RETURNING id AS value;

-- name: end_subscription
-- Its endpoint asked for no more, ever.
UPDATE sys_deliveries SET status = 'dead', finished_at = :now, last_failure = 'gone',
  connection = NULL, held_since = NULL, version = version + 1
WHERE subscription_id = :subscription_id AND finished_at IS NULL AND status <> 'running'
RETURNING id AS value;

-- name: release_connection
-- The breaker has closed: what it held goes on.
UPDATE sys_deliveries SET status = iif(attempts > 0, 'retry', 'pending'), connection = NULL,
  held_since = NULL, version = version + 1
WHERE connection = :connection AND finished_at IS NULL AND held_since IS NOT NULL
RETURNING id AS value;

-- name: find_probe
-- Which of those that a breaker holds is tried first: whose own time came longest ago.
SELECT d.id, d.subscription_id, d.next_attempt_at
FROM sys_deliveries AS d JOIN sys_subscriptions AS s ON s.id = d.subscription_id
WHERE d.connection = :connection AND d.finished_at IS NULL AND d.held_since IS NOT NULL
  AND d.is_waiting = 0 AND s.enabled = 1
ORDER BY d.next_attempt_at, d.event_seq LIMIT 1;

-- name: release_probe
-- It is let go, to be claimed at once.
UPDATE sys_deliveries SET status = iif(attempts > 0, 'retry', 'pending'), connection = NULL,
  held_since = NULL, next_attempt_at = min(next_attempt_at, :now), version = version + 1
WHERE id = :id AND finished_at IS NULL AND held_since IS NOT NULL RETURNING id AS value;

-- name: find_delivery
-- One delivery, without what it says.
SELECT d.id, o.type, o.event_id, d.subscription_id, s.kind, s.name, d.status, d.attempts,
  d.next_attempt_at, d.last_failure, d.last_status, d.connection, d.held_since, d.created_at,
  d.finished_at, d.version
FROM sys_deliveries AS d JOIN sys_outbox AS o ON o.event_seq = d.event_seq
  JOIN sys_subscriptions AS s ON s.id = d.subscription_id
WHERE d.id = :id;

-- name: list_deliveries
-- Of all subscribers, of one status or of any, newest first.
SELECT d.id, o.type, o.event_id, d.subscription_id, s.kind, s.name, d.status, d.attempts,
  d.next_attempt_at, d.last_failure, d.last_status, d.connection, d.held_since, d.created_at,
  d.finished_at, d.version
FROM sys_deliveries AS d JOIN sys_outbox AS o ON o.event_seq = d.event_seq
  JOIN sys_subscriptions AS s ON s.id = d.subscription_id
WHERE d.id < :before AND (:status IS NULL OR d.status = :status)
ORDER BY d.id DESC LIMIT +:limit;

-- name: list_deliveries_of
-- Of one subscriber, newest first.
SELECT d.id, o.type, o.event_id, d.subscription_id, s.kind, s.name, d.status, d.attempts,
  d.next_attempt_at, d.last_failure, d.last_status, d.connection, d.held_since, d.created_at,
  d.finished_at, d.version
FROM sys_deliveries AS d JOIN sys_outbox AS o ON o.event_seq = d.event_seq
  JOIN sys_subscriptions AS s ON s.id = d.subscription_id
WHERE d.subscription_id = :subscription_id AND d.id < :before
ORDER BY d.id DESC LIMIT +:limit;

-- name: retry_delivery
-- From the beginning, at once; nothing while a try is under way.
UPDATE sys_deliveries SET status = 'pending', attempts = 0, next_attempt_at = :now,
  finished_at = NULL, connection = NULL, held_since = NULL, version = version + 1
WHERE id = :id AND status IN ('retry', 'held', 'dead', 'cancelled') RETURNING id AS value;

-- name: cancel_delivery
-- Never again; a try under way is not called back, and may not mark it.
UPDATE sys_deliveries SET status = 'cancelled', finished_at = :now, connection = NULL,
  held_since = NULL, lease_owner = NULL, lease_until = NULL, generation = generation + 1,
  version = version + 1
WHERE id = :id AND finished_at IS NULL RETURNING id AS value;

-- name: find_next_delivery
-- When a store next has something to do for a subscriber or a breaker; NULL for never.
-- inline: few subscribers and breakers, and of each one entry of an index
SELECT min(due_at) AS value FROM (
  SELECT (
    SELECT min(coalesce(d.lease_until, d.next_attempt_at)) FROM sys_deliveries AS d
    WHERE d.subscription_id = s.id AND d.finished_at IS NULL AND d.is_waiting = 0
      AND d.held_since IS NULL
  ) AS due_at FROM sys_subscriptions AS s WHERE s.enabled = 1
  UNION ALL
  SELECT max(b.next_probe_at, (
    SELECT min(h.next_attempt_at) FROM sys_deliveries AS h
    WHERE h.connection = b.connection AND h.finished_at IS NULL AND h.held_since IS NOT NULL
      AND h.is_waiting = 0
  )) FROM sys_circuit_breakers AS b WHERE b.opened_at > 0
  UNION ALL
  SELECT min(a.opened_at) + :alert_ms FROM sys_circuit_breakers AS a
  WHERE a.opened_at > 0 AND a.alerted_at IS NULL
);

-- name: remove_delivered
-- Events that every subscriber was told, or will not be, with their deliveries.
DELETE FROM sys_outbox WHERE event_seq IN (
  SELECT d.event_seq FROM sys_deliveries AS d WHERE d.finished_at < :before
    AND NOT EXISTS (SELECT 1 FROM sys_deliveries AS other WHERE other.event_seq = d.event_seq
      AND (other.finished_at IS NULL
        OR other.finished_at >= iif(other.status = 'dead', :dead_before, :before)))
  ORDER BY d.finished_at LIMIT +:limit
) RETURNING event_seq AS value;

-- name: remove_unowed
-- Events whose every subscriber has gone.
-- scan: the outbox is as small as what is owed and a week of what was
DELETE FROM sys_outbox WHERE event_seq IN (
  SELECT o.event_seq FROM sys_outbox AS o WHERE o.occurred_at < :before
    AND NOT EXISTS (SELECT 1 FROM sys_deliveries AS d WHERE d.event_seq = o.event_seq)
  LIMIT +:limit
) RETURNING event_seq AS value;

-- name: remove_handled
-- Marks of deliveries that nobody will try again.
-- scan: few parts of the program are told
DELETE FROM sys_handled_deliveries WHERE delivery_id IN (
  SELECT delivery_id FROM sys_handled_deliveries WHERE handled_at < :before LIMIT +:limit
) RETURNING delivery_id AS value;

-- name: note_handled
-- A delivery has its effect in this store with this transaction; nothing when it had it before.
INSERT INTO sys_handled_deliveries (delivery_id, subscriber, handled_at)
VALUES (:delivery_id, :subscriber, :now)
ON CONFLICT (delivery_id) DO NOTHING RETURNING delivery_id AS value;

-- name: right_deliveries
-- A try later than any is one by a clock that was set back since: it is made now.
-- scan: those that are open, once an hour
UPDATE sys_deliveries SET lease_until = iif(lease_until IS NULL, NULL, :now), next_attempt_at = :now
WHERE id IN (SELECT id FROM sys_deliveries WHERE finished_at IS NULL
  AND coalesce(lease_until, next_attempt_at) > :beyond LIMIT +:limit)
RETURNING id AS value;

-- name: right_probes
-- The same of a breaker's next probe.
-- scan: few breakers, once an hour
UPDATE sys_circuit_breakers SET next_probe_at = :now WHERE next_probe_at > :beyond
RETURNING connection AS value;
