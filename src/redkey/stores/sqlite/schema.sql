-- The layout of redkey.db, equal to the sum of migrations/, as a test proves. Tables are in the order in which an event
-- passes through them. Every row except settings belongs to one topic.

-- Facts about the whole store.
CREATE TABLE setting (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE topic (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE
) STRICT;

-- The ledger. A position is topic.number * 2^40 + sequence, so the records of a topic are contiguous and in order, and
-- the head is the last of them; it is stored nowhere else. `subjects` is a JSON array: "#" with the wire id, then the ids
-- of the entities in the record. Requests with an idempotency key also have "keyed", and "idem:" with half of the key's
-- hash.
CREATE TABLE record (
  position INTEGER PRIMARY KEY,
  timestamp INTEGER NOT NULL,
  payer TEXT NOT NULL,
  running_hash BLOB NOT NULL,
  subjects TEXT NOT NULL,
  wire BLOB NOT NULL
) STRICT;

-- Records by subject, for the complete blocks of 256 records of each topic; the last 0 to 255 records are scanned.
-- So a subject that occurs in every unit costs one page write per 256 records, not one per unit.
CREATE TABLE event (
  subject TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (subject, position)
) STRICT, WITHOUT ROWID;

-- Complete Merkle tiles; the incomplete right edge of the tree is rebuilt from records.
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

-- The read model: one row per entity.
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

-- The next time at which a timer of a topic is due, in ledger time, so that due topics are found without loading them.
CREATE TABLE due (
  topic INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT;

CREATE INDEX due_at ON due (at);

-- Bodies outside the ledger. `data` is null if the body is a file. Rows are appended, never deleted, and never change
-- their size (an erased body becomes zeros of the same length). So SQLite never moves a body to another page, which would
-- leave a copy behind.
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

-- Sums over the records up to the sequence number in the counter `counted_at`, and sums of facts outside the ledger.
CREATE TABLE counter (
  topic INTEGER NOT NULL,
  name TEXT NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (topic, name)
) STRICT, WITHOUT ROWID;
