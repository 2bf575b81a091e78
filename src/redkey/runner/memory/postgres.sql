-- Memories in PostgreSQL, in their own schema. Statements are found by name; {vector} is the schema of the extension
-- pgvector. Every name is qualified, because a pooler may change the search path.

-- name: exists
SELECT to_regclass('redkey_memory.memory') IS NOT NULL, to_regclass('redkey_memory.vector') IS NOT NULL;

-- name: lock_schema
-- Serialise runners that create the tables at the same time.
SELECT pg_advisory_xact_lock(hashtextextended('redkey_memory', 0));

-- name: schema
-- A text of 8,000 characters is too long for an index, so its hash is the key. Words are stored as stems.
CREATE SCHEMA IF NOT EXISTS redkey_memory;
CREATE TABLE IF NOT EXISTS redkey_memory.memory (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workspace_id text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  text text NOT NULL,
  sha256 bytea NOT NULL,
  written_at text COLLATE "C" NOT NULL,
  words tsvector GENERATED ALWAYS AS (to_tsvector('pg_catalog.english', text)) STORED,
  UNIQUE (workspace_id, agent, sha256)
);
CREATE INDEX IF NOT EXISTS memory_newest ON redkey_memory.memory (workspace_id, agent, written_at, id);

-- name: extension
CREATE EXTENSION IF NOT EXISTS vector;

-- name: extension_schema
SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector';

-- name: vector_schema
-- Vectors of different embedders have different lengths and cannot be compared.
CREATE TABLE IF NOT EXISTS redkey_memory.vector (
  memory bigint NOT NULL REFERENCES redkey_memory.memory ON DELETE CASCADE,
  embedder text COLLATE "C" NOT NULL,
  vector {vector}.vector NOT NULL,
  PRIMARY KEY (memory, embedder)
);

-- name: remember
-- The same text again updates the time of its memory. The database's clock is used, because runners are on several
-- machines.
INSERT INTO redkey_memory.memory (workspace_id, agent, task_id, text, sha256, written_at)
VALUES (%(workspace_id)s, %(agent)s, %(task_id)s, %(text)s, %(sha256)s,
  coalesce(nullif(%(written_at)s::text, ''), to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
ON CONFLICT (workspace_id, agent, sha256) DO UPDATE SET written_at = excluded.written_at, task_id = excluded.task_id
RETURNING id;

-- name: set_vector
INSERT INTO redkey_memory.vector (memory, embedder, vector)
SELECT id, %(embedder)s, %(vector)s::text::{vector}.vector FROM redkey_memory.memory WHERE id = %(id)s
ON CONFLICT (memory, embedder) DO NOTHING;

-- name: forget_oldest
-- Delete all but the newest memories of an owner.
DELETE FROM redkey_memory.memory WHERE id IN (
  SELECT id FROM redkey_memory.memory WHERE workspace_id = %(workspace_id)s AND agent = %(agent)s
  ORDER BY written_at DESC, id DESC OFFSET %(keep)s
);

-- name: by_words
-- The owner's memories that contain any of the words.
SELECT m.text, m.written_at, m.task_id
FROM redkey_memory.memory m, to_tsquery('pg_catalog.english', %(words)s) AS asked
WHERE m.workspace_id = %(workspace_id)s AND m.agent = %(agent)s AND m.words @@ asked
ORDER BY ts_rank(m.words, asked) DESC, m.id DESC LIMIT %(limit)s;

-- name: without_vector
-- The owner's memories without a vector of this embedder.
SELECT m.id, m.text FROM redkey_memory.memory m
LEFT JOIN redkey_memory.vector v ON v.memory = m.id AND v.embedder = %(embedder)s
WHERE m.workspace_id = %(workspace_id)s AND m.agent = %(agent)s AND v.memory IS NULL
ORDER BY m.id DESC LIMIT %(limit)s;

-- name: nearest
-- Exact search: it compares all vectors of an owner, whose number is bounded. An approximate index would search the
-- vectors of all owners, and then drop most of what it found because of the condition on the owner.
SELECT near.text, near.written_at, near.task_id FROM (
  SELECT m.id, m.text, m.written_at, m.task_id,
    v.vector OPERATOR({vector}.<=>) %(vector)s::text::{vector}.vector AS distance
  FROM redkey_memory.memory m JOIN redkey_memory.vector v ON v.memory = m.id
  WHERE m.workspace_id = %(workspace_id)s AND m.agent = %(agent)s AND v.embedder = %(embedder)s
) AS near
WHERE near.distance <= %(distance)s ORDER BY near.distance, near.id DESC LIMIT %(limit)s;
