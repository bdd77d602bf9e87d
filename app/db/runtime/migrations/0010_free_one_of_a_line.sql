-- Of an entity's deliveries one at a time is under way. One that ends frees the next only if it was
-- that one: where a cancelled one had waited, another is under way.

DROP TRIGGER sys_deliveries_move_up;

CREATE TRIGGER sys_deliveries_move_up AFTER UPDATE OF finished_at ON sys_deliveries
WHEN NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND NOT EXISTS (
  SELECT 1 FROM sys_deliveries WHERE subscription_id = NEW.subscription_id
    AND entity = NEW.entity AND finished_at IS NULL AND is_waiting = 0
) BEGIN
  UPDATE sys_deliveries SET is_waiting = 0 WHERE id = (
    SELECT id FROM sys_deliveries WHERE subscription_id = NEW.subscription_id
      AND entity = NEW.entity AND finished_at IS NULL ORDER BY event_seq LIMIT 1);
END;
