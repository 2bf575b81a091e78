-- The database of the bus: sessions, agents, records, and the unconfirmed messages of each agent. The position of a
-- record is one integer: the number of its session shifted left by 40 bits, plus its sequence number in the session.
CREATE TABLE session (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    status TEXT NOT NULL DEFAULT 'open',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    workspace TEXT NOT NULL,
    ledger_cursor INTEGER,
    policy TEXT NOT NULL DEFAULT 'open'
);
CREATE TABLE agent (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    name TEXT,
    lead INTEGER NOT NULL,
    status TEXT,
    place INTEGER NOT NULL,
    online INTEGER NOT NULL DEFAULT 0,
    seen_at TEXT,
    UNIQUE (session, id)
);
CREATE TABLE record (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    ts TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    envelope BLOB NOT NULL
);
CREATE UNIQUE INDEX record_of_message ON record (session, id);
-- When sessions of any workspace were created and closed, in order.
CREATE TABLE session_record (number INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER NOT NULL);
-- Messages that an agent has not confirmed.
CREATE TABLE pending (agent INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (agent, seq)) WITHOUT ROWID;
-- Answers to HTTP requests with an Idempotency-Key.
CREATE TABLE answer (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    status INTEGER NOT NULL,
    body BLOB NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX answer_at ON answer (at);
-- Owners of conversations in guarded sessions, if the conversation's id is not the id of its first message.
CREATE TABLE conversation (
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
