-- The layout of redkey.db. It is the sum of migrations/: a test proves that. Tables are in the order in which an
-- event meets them. Everything but the settings belongs to one topic.

-- Facts about the whole store.
CREATE TABLE setting (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE topic (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE
) STRICT;

-- The ledger. A position is topic.number * 2^40 + sequence, so each topic is one run of the table in its own
-- order, and its head is the last row of that run: there is no second place that could disagree. `subjects` is
-- a JSON array: "#" and the wire id, then the ids of what the record speaks of; a request with an idempotency key has
-- "keyed", and "idem:" with half of the key's hash.
CREATE TABLE record (
  position INTEGER PRIMARY KEY,
  timestamp INTEGER NOT NULL,
  payer TEXT NOT NULL,
  running_hash BLOB NOT NULL,
  subjects TEXT NOT NULL,
  wire BLOB NOT NULL
) STRICT;

-- Records by subject, for each topic's complete blocks of 256 records; the up to 255 after them are looked through.
-- An agent that speaks in every unit then costs a page in 256 records, not in each unit.
CREATE TABLE event (
  subject TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (subject, position)
) STRICT, WITHOUT ROWID;

-- Complete Merkle tiles; what is right of them is rebuilt from records.
CREATE TABLE tile (
  topic INTEGER NOT NULL,
  level INTEGER NOT NULL,
  number INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (topic, level, number)
) STRICT;

CREATE TABLE checkpoint (
  topic INTEGER NOT NULL,
  size INTEGER NOT NULL,
  note BLOB NOT NULL,
  PRIMARY KEY (topic, size)
) STRICT, WITHOUT ROWID;

-- The read model: one row an entity.
CREATE TABLE row (
  number INTEGER PRIMARY KEY,
  topic INTEGER NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  body BLOB NOT NULL,
  listed TEXT NOT NULL,
  position INTEGER NOT NULL,
  UNIQUE (topic, kind, key)
) STRICT;

CREATE INDEX row_listed ON row (topic, kind, listed, position, key) WHERE listed <> '';

-- When something is due next in a topic, in the ledger's time: what is due is found without loading a world.
CREATE TABLE due (
  topic INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT;

CREATE INDEX due_at ON due (at);

-- Bytes outside the ledger. `data` is null when they are a file. Rows are added at the end, never deleted and
-- never change their size (an erased body becomes as many zeros), so no body is ever moved to another page:
-- a page that it had left would keep a copy of it.
CREATE TABLE content (
  number INTEGER PRIMARY KEY,
  topic INTEGER NOT NULL,
  sha256 BLOB NOT NULL,
  bytes INTEGER NOT NULL,
  pinned INTEGER NOT NULL,
  erased INTEGER NOT NULL,
  data BLOB,
  UNIQUE (topic, sha256)
) STRICT;

-- Sums over the records up to the one that the counter `counted_at` names, and sums that are not of the ledger.
CREATE TABLE counter (
  topic INTEGER NOT NULL,
  name TEXT NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (topic, name)
) STRICT, WITHOUT ROWID;
