-- The layout of a ledger in PostgreSQL, in a schema of its own: nothing is created in `public`. Tables are in the order
-- in which an event meets them. Text that is a key sorts by bytes (COLLATE "C"), as in every other store: a database
-- may sort by a language otherwise, and lists would come in another order.
CREATE SCHEMA IF NOT EXISTS redkey;

-- The migrations that were applied: the version of the format is the highest one.
CREATE TABLE redkey.format (
  version integer PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);

-- Facts about the whole store.
CREATE TABLE redkey.setting (
  name text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

-- A topic with its head. The row is the writer lock of the topic: a unit takes it FOR UPDATE. `units` counts commits,
-- also those without records. No column that changes is indexed, so an update rewrites no index.
CREATE TABLE redkey.topic (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  sequence bigint NOT NULL DEFAULT 0,
  timestamp bigint NOT NULL DEFAULT 0,
  running_hash bytea NOT NULL DEFAULT '\x',
  units bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The ledger. The primary key is the last fence: two records never take one place. `subjects` has "#" and the wire id,
-- then the ids of what the record is about; a request with an idempotency key has "keyed", and "idem:" with half of the
-- key's hash.
CREATE TABLE redkey.record (
  topic bigint NOT NULL,
  sequence bigint NOT NULL,
  timestamp bigint NOT NULL,
  payer text NOT NULL,
  running_hash bytea NOT NULL,
  subjects text[] NOT NULL,
  wire bytea NOT NULL,
  PRIMARY KEY (topic, sequence)
);

-- Records by subject, for each topic's complete blocks of 256 records; the up to 255 after them are looked through.
CREATE TABLE redkey.event (
  topic bigint NOT NULL,
  subject text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  PRIMARY KEY (topic, subject, sequence)
);

-- Complete Merkle tiles; what is right of them is rebuilt from records.
CREATE TABLE redkey.tile (
  topic bigint NOT NULL,
  level integer NOT NULL,
  number bigint NOT NULL,
  hashes bytea NOT NULL,
  PRIMARY KEY (topic, level, number)
);

CREATE TABLE redkey.checkpoint (
  topic bigint NOT NULL,
  size bigint NOT NULL,
  note bytea NOT NULL,
  PRIMARY KEY (topic, size)
);

-- The read model: one row an entity. `body` is JSON as bytes: jsonb refuses texts with \u0000, which are legal.
CREATE TABLE redkey.row (
  topic bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  body bytea NOT NULL,
  listed text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  PRIMARY KEY (topic, kind, key)
);

CREATE INDEX row_listed ON redkey.row (topic, kind, listed, position, key) WHERE listed <> '';

-- When something is due next in a topic, in the ledger's time: any server finds it without loading a world.
CREATE TABLE redkey.due (
  topic bigint PRIMARY KEY,
  at bigint NOT NULL
);

CREATE INDEX due_at ON redkey.due (at);

-- Bodies that arrive in pieces, staged before a unit adopts them. `seen` is when the last piece came: what stays
-- without a unit is deleted a day later.
CREATE TABLE redkey.upload (
  id uuid PRIMARY KEY,
  seen timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX upload_seen ON redkey.upload (seen);

CREATE TABLE redkey.piece (
  upload uuid NOT NULL REFERENCES redkey.upload (id) ON DELETE CASCADE,
  number integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (upload, number)
);

-- Bytes outside the ledger: in `data`, or in the pieces of an upload. An erased body has neither.
CREATE TABLE redkey.content (
  topic bigint NOT NULL,
  sha256 bytea NOT NULL,
  bytes bigint NOT NULL,
  pinned boolean NOT NULL,
  erased boolean NOT NULL DEFAULT false,
  data bytea,
  upload uuid REFERENCES redkey.upload (id),
  PRIMARY KEY (topic, sha256)
);

CREATE INDEX content_upload ON redkey.content (upload) WHERE upload IS NOT NULL;

-- Sums over the records up to the one that the counter `counted_at` names, and sums that are not of the ledger.
CREATE TABLE redkey.counter (
  topic bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  amount bigint NOT NULL,
  PRIMARY KEY (topic, name)
);

-- The servers that are alive: each renews its row every few seconds, and deletes it when it stops. After a failover
-- (another timeline of the database) each one confirms that the database has all it knows of, or says what is missing.
CREATE TABLE redkey.server (
  id text COLLATE "C" PRIMARY KEY,
  url text NOT NULL,
  version text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen timestamptz NOT NULL DEFAULT now(),
  confirmed integer NOT NULL DEFAULT 0,
  missing text NOT NULL DEFAULT ''
);

-- Secrets of the log (signing, issuing, OAuth), each sealed under a key that the database does not have. A retired key
-- keeps its public part only.
CREATE TABLE redkey.secret (
  name text COLLATE "C" PRIMARY KEY,
  public text NOT NULL,
  sealed bytea
);
