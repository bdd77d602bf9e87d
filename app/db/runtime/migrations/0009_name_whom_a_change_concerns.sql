-- What somebody did to a member's account, session or key is found by that member, however long
-- ago its fields were let go. It is no part of the chain: entity and record say the same.

ALTER TABLE sys_audit ADD COLUMN done_to TEXT; -- bare: the member; NULL: nobody, or they themselves

CREATE INDEX sys_audit_done_to ON sys_audit (done_to, seq) WHERE done_to IS NOT NULL;
