-- From format 1 to 2: sessions have a policy, agents a presence, and conversations of guarded sessions an owner.
ALTER TABLE session ADD COLUMN policy TEXT NOT NULL DEFAULT 'open';
ALTER TABLE agent ADD COLUMN online INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent ADD COLUMN seen_at TEXT;
CREATE TABLE conversation (
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
