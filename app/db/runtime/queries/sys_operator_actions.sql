-- name: add_operator_action
-- What an operator did by hand, with the item's state as it was then.
INSERT INTO sys_operator_actions (id, acted_at, action, item, item_state, operator)
VALUES (:id, :now, :action, :item, :item_state, :operator);

-- name: list_operator_actions
-- The acts on one item, newest first.
-- scan: few acts are ever made, and only an operator asks
SELECT id, acted_at, action, item, item_state, operator FROM sys_operator_actions
WHERE item = :item ORDER BY id DESC LIMIT +:limit;
