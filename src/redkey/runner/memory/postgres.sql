-- Memories in PostgreSQL, in a schema of their own. Statements are found by their names; {vector} is the schema that
-- has the extension pgvector. Every name is qualified: behind a pooler the search path is not ours.

-- name: exists
SELECT to_regclass('redkey_memory.memory') IS NOT NULL, to_regclass('redkey_memory.vector') IS NOT NULL;

-- name: lock_schema
-- Two runners that start together create the tables one after the other.
SELECT pg_advisory_xact_lock(hashtextextended('redkey_memory', 0));

-- name: schema
-- A text of 8,000 characters does not fit into an index, so its hash is the key. Words are stored without endings.
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
-- Vectors of different embedders have different lengths and do not compare.
CREATE TABLE IF NOT EXISTS redkey_memory.vector (
  memory bigint NOT NULL REFERENCES redkey_memory.memory ON DELETE CASCADE,
  embedder text COLLATE "C" NOT NULL,
  vector {vector}.vector NOT NULL,
  PRIMARY KEY (memory, embedder)
);

-- name: remember
-- The same words again are the same memory, renewed. The time is the database's: runners are on several machines.
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
-- Keep the newest of an owner.
DELETE FROM redkey_memory.memory WHERE id IN (
  SELECT id FROM redkey_memory.memory WHERE workspace_id = %(workspace_id)s AND agent = %(agent)s
  ORDER BY written_at DESC, id DESC OFFSET %(keep)s
);

-- name: by_words
-- The owner's memories that have any of the words.
SELECT m.text, m.written_at, m.task_id
FROM redkey_memory.memory m, to_tsquery('pg_catalog.english', %(words)s) AS asked
WHERE m.workspace_id = %(workspace_id)s AND m.agent = %(agent)s AND m.words @@ asked
ORDER BY ts_rank(m.words, asked) DESC, m.id DESC LIMIT %(limit)s;

-- name: without_vector
-- What was remembered without this embedder.
SELECT m.id, m.text FROM redkey_memory.memory m
LEFT JOIN redkey_memory.vector v ON v.memory = m.id AND v.embedder = %(embedder)s
WHERE m.workspace_id = %(workspace_id)s AND m.agent = %(agent)s AND v.memory IS NULL
ORDER BY m.id DESC LIMIT %(limit)s;

-- name: nearest
-- Exact: all vectors of an owner are compared, and their number is bounded. An approximate index would search those of
-- all owners and lose most of what it finds to the condition on the owner.
SELECT near.text, near.written_at, near.task_id FROM (
  SELECT m.id, m.text, m.written_at, m.task_id,
    v.vector OPERATOR({vector}.<=>) %(vector)s::text::{vector}.vector AS distance
  FROM redkey_memory.memory m JOIN redkey_memory.vector v ON v.memory = m.id
  WHERE m.workspace_id = %(workspace_id)s AND m.agent = %(agent)s AND v.embedder = %(embedder)s
) AS near
WHERE near.distance <= %(distance)s ORDER BY near.distance, near.id DESC LIMIT %(limit)s;
