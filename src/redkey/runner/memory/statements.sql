-- Memories with their full-text index and vectors, in one file. Statements are found by name.

-- name: schema
-- Words are indexed as stems; triggers keep the index in step with the rows.
CREATE TABLE IF NOT EXISTS memories (
  id INTEGER PRIMARY KEY,
  workspace_id TEXT NOT NULL,
  agent TEXT NOT NULL,
  task_id TEXT NOT NULL,
  text TEXT NOT NULL,
  written_at TEXT NOT NULL,
  embedder TEXT NOT NULL DEFAULT '',
  vector BLOB,
  UNIQUE (workspace_id, agent, text)
) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS memory_words USING fts5 (
  text, content = 'memories', content_rowid = 'id', tokenize = 'porter unicode61'
);
CREATE TRIGGER IF NOT EXISTS memory_added AFTER INSERT ON memories BEGIN
  INSERT INTO memory_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER IF NOT EXISTS memory_removed AFTER DELETE ON memories BEGIN
  INSERT INTO memory_words (memory_words, rowid, text) VALUES ('delete', old.id, old.text);
END;

-- name: remember
-- The same text again updates the time of its memory.
INSERT INTO memories (workspace_id, agent, task_id, text, written_at, embedder, vector)
VALUES (:workspace_id, :agent, :task_id, :text, :written_at, :embedder, :vector)
ON CONFLICT (workspace_id, agent, text) DO UPDATE SET written_at = excluded.written_at, task_id = excluded.task_id;

-- name: forget_oldest
-- Delete all but the newest memories of an owner.
DELETE FROM memories WHERE id IN (
  SELECT id FROM memories WHERE workspace_id = :workspace_id AND agent = :agent
  ORDER BY written_at DESC, id DESC LIMIT -1 OFFSET :keep
);

-- name: by_words
-- The owner's memories that contain any of the words, ranked by BM25.
SELECT m.text, m.written_at, m.task_id FROM memory_words JOIN memories m ON m.id = memory_words.rowid
WHERE memory_words MATCH :words AND m.workspace_id = :workspace_id AND m.agent = :agent
ORDER BY bm25(memory_words), m.id DESC LIMIT :limit;

-- name: without_vector
-- The owner's memories without a vector of this embedder.
SELECT id, text FROM memories
WHERE workspace_id = :workspace_id AND agent = :agent AND embedder != :embedder ORDER BY id DESC LIMIT :limit;

-- name: set_vector
-- Store the vector of one memory.
UPDATE memories SET embedder = :embedder, vector = :vector WHERE id = :id;

-- name: vectors
-- The owner's vectors of one embedder.
SELECT id, vector FROM memories WHERE workspace_id = :workspace_id AND agent = :agent AND embedder = :embedder;

-- name: one
-- One memory.
SELECT text, written_at, task_id FROM memories WHERE id = :id;
