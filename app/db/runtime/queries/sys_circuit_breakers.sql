-- name: find_breaker
-- How a connection has done of late; nothing when well.
SELECT connection, state, failures, pauses, opened_at, next_probe_at, alerted_at, version
FROM sys_circuit_breakers WHERE connection = :connection;

-- name: list_breakers
-- Every connection that failed of late.
-- scan: few connections are ever in trouble
SELECT connection, state, failures, pauses, opened_at, next_probe_at, alerted_at, version
FROM sys_circuit_breakers ORDER BY connection;

-- name: list_open_breakers
-- Those that hold deliveries back.
-- scan: few connections are ever in trouble
SELECT connection, state, failures, pauses, opened_at, next_probe_at, alerted_at, version
FROM sys_circuit_breakers WHERE opened_at IS NOT NULL ORDER BY next_probe_at;

-- name: set_breaker
-- How it stands now.
INSERT INTO sys_circuit_breakers (connection, state, failures, pauses, opened_at, next_probe_at)
VALUES (:connection, :state, :failures, :pauses, :opened_at, :next_probe_at)
ON CONFLICT (connection) DO UPDATE SET state = :state, failures = :failures, pauses = :pauses,
  opened_at = :opened_at, next_probe_at = :next_probe_at, version = version + 1;

-- name: remove_breaker
-- The connection is well again.
DELETE FROM sys_circuit_breakers WHERE connection = :connection
RETURNING opened_at AS value;

-- name: alert_breakers
-- Those open since before a moment that nobody was told of yet.
UPDATE sys_circuit_breakers SET alerted_at = :now, version = version + 1
WHERE opened_at <= :before AND alerted_at IS NULL RETURNING connection AS value;
