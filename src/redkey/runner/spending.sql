-- What the agents of this directory have spent, by scope, in one file. Statements are found by name.

-- name: schema
CREATE TABLE IF NOT EXISTS spent (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  usd_nano INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (scope, name)
) STRICT;

-- name: add
INSERT INTO spent (scope, name, usd_nano, input_tokens, output_tokens, updated_at)
VALUES (:scope, :name, :usd_nano, :input_tokens, :output_tokens, :updated_at)
ON CONFLICT (scope, name) DO UPDATE SET
  usd_nano = usd_nano + excluded.usd_nano,
  input_tokens = input_tokens + excluded.input_tokens,
  output_tokens = output_tokens + excluded.output_tokens,
  updated_at = excluded.updated_at;

-- name: raise
-- The dearest call of an agent.
INSERT INTO spent (scope, name, usd_nano, input_tokens, output_tokens, updated_at)
VALUES (:scope, :name, :usd_nano, :input_tokens, :output_tokens, :updated_at)
ON CONFLICT (scope, name) DO UPDATE SET usd_nano = excluded.usd_nano, updated_at = excluded.updated_at
WHERE excluded.usd_nano >= usd_nano;

-- name: read
SELECT usd_nano FROM spent WHERE scope = :scope AND name = :name;

-- name: forget
-- Delete old sums of tasks, workflows and days, and what calls cost long ago; the totals of agents and models stay.
DELETE FROM spent WHERE scope IN ('task', 'workflow', 'day', 'dearest') AND updated_at < :before;
