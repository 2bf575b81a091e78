-- The first layout.

CREATE TABLE setting (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE topic (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE record (
  position INTEGER PRIMARY KEY,
  timestamp INTEGER NOT NULL,
  payer TEXT NOT NULL,
  running_hash BLOB NOT NULL,
  subjects TEXT NOT NULL,
  wire BLOB NOT NULL
) STRICT;

CREATE TABLE event (
  subject TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (subject, position)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE counter (
  topic INTEGER NOT NULL,
  name TEXT NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (topic, name)
) STRICT, WITHOUT ROWID;
