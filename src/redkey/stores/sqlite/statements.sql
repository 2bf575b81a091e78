-- Every statement the store runs, each under `-- name:` with one line on what it is for.

-- name: topics
-- All topics in the order in which they began.
SELECT id FROM topic ORDER BY number

-- name: topic_number
-- The number that stands for a topic everywhere else.
SELECT number FROM topic WHERE id = ?

-- name: insert_topic
-- Begin a topic.
INSERT INTO topic (id) VALUES (?) RETURNING number

-- name: last_local_topic
-- The highest local topic: the next one follows it.
SELECT max(CAST(substr(id, 5) AS INTEGER)) FROM topic WHERE id GLOB '1.0.[0-9]*'

-- name: insert_record
-- Append to the ledger.
INSERT INTO record (position, timestamp, payer, running_hash, subjects, wire) VALUES (?, ?, ?, ?, ?, ?)

-- name: index_block
-- Make the records of complete blocks findable by their subjects.
INSERT OR IGNORE INTO event (subject, position)
SELECT subject.value, position FROM record, json_each(subjects) AS subject
WHERE position > ? AND position <= ? ORDER BY 1, 2

-- name: head
-- The last record of a topic: the highest position in its run.
SELECT position, timestamp, running_hash FROM record WHERE position BETWEEN ? AND ? ORDER BY position DESC LIMIT 1

-- name: records_after
-- Records in order, between two positions.
SELECT position, timestamp, payer, running_hash, wire FROM record
WHERE position > ? AND position <= ? ORDER BY position LIMIT ?

-- name: records_before
-- Records newest first, between two positions.
SELECT position, timestamp, payer, running_hash, wire FROM record
WHERE position > ? AND position < ? ORDER BY position DESC LIMIT ?

-- name: records_containing
-- Records whose wires contain some bytes, newest first, between two positions.
SELECT position, timestamp, payer, running_hash, wire FROM record
WHERE position > ? AND position < ? AND instr(wire, ?) ORDER BY position DESC LIMIT ?

-- name: events_after
-- Records with a subject, in order: from the index, then from the block that is not complete.
SELECT position, timestamp, payer, running_hash, wire FROM record WHERE position IN (
  SELECT position FROM event WHERE subject = :subject AND position > :after AND position <= :last
  UNION ALL
  SELECT position FROM record
  WHERE position > max(:after, (SELECT max(position) & ~255 FROM record WHERE position BETWEEN :first AND :last))
    AND position <= :last AND instr(subjects, :quoted)
    AND EXISTS (SELECT 1 FROM json_each(subjects) WHERE value = :subject)
  ORDER BY position LIMIT :limit
) ORDER BY position

-- name: events_before
-- Records with a subject, newest first: from the block that is not complete, then from the index.
SELECT position, timestamp, payer, running_hash, wire FROM record WHERE position IN (
  SELECT position FROM event WHERE subject = :subject AND position < :after AND position >= :first
  UNION ALL
  SELECT position FROM record
  WHERE position > (SELECT max(position) & ~255 FROM record WHERE position BETWEEN :first AND :last)
    AND position < :after AND instr(subjects, :quoted)
    AND EXISTS (SELECT 1 FROM json_each(subjects) WHERE value = :subject)
  ORDER BY position DESC LIMIT :limit
) ORDER BY position DESC

-- name: insert_tile
-- Keep a complete Merkle tile.
INSERT INTO tile (topic, level, number, hashes) VALUES (?, ?, ?, ?)

-- name: tile
-- One complete Merkle tile.
SELECT hashes FROM tile WHERE topic = ? AND level = ? AND number = ?

-- name: put_checkpoint
-- Keep a signed checkpoint; one signed again at the same size (another key) takes its place.
INSERT INTO checkpoint (topic, size, note) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET note = excluded.note

-- name: checkpoints
-- Signed checkpoints, largest first.
SELECT size, note FROM checkpoint WHERE topic = ? ORDER BY size DESC LIMIT ?

-- name: last_checkpoints
-- The size of the largest checkpoint of each topic.
SELECT id, (SELECT max(size) FROM checkpoint WHERE topic = topic.number) FROM topic

-- name: put_row
-- Write an entity of the read model.
INSERT INTO row (topic, kind, key, body, listed, position) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (topic, kind, key)
DO UPDATE SET body = excluded.body, listed = excluded.listed, position = excluded.position

-- name: delete_row
-- Take an entity out of the read model.
DELETE FROM row WHERE topic = ? AND kind = ? AND key = ?

-- name: row
-- One entity.
SELECT kind, key, body, listed, position FROM row WHERE topic = ? AND kind = ? AND key = ?

-- name: rows
-- Entities of a kind by key.
SELECT kind, key, body, listed, position FROM row WHERE topic = ? AND kind = ? AND key > ? ORDER BY key LIMIT ?

-- name: rows_listed
-- Entities of one list by position and key.
SELECT kind, key, body, listed, position FROM row
WHERE topic = ? AND kind = ? AND listed = ? AND listed <> '' AND (position, key) > (?, ?)
ORDER BY position, key LIMIT ?

-- name: due
-- Topics in which something may be due, the earliest first.
SELECT id FROM due JOIN topic ON number = due.topic WHERE at <= ? ORDER BY at LIMIT ?

-- name: due_of
-- When something is due next in a topic.
SELECT at FROM due WHERE topic = ?

-- name: put_due
-- Set when something is due next in a topic.
INSERT INTO due (topic, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at

-- name: delete_due
-- Nothing is due in a topic any more.
DELETE FROM due WHERE topic = ?

-- name: put_content
-- Keep a body; one that was erased comes back, one that is there can only become pinned.
INSERT INTO content (topic, sha256, bytes, pinned, erased, data) VALUES (?, ?, ?, ?, 0, ?)
ON CONFLICT (topic, sha256) DO UPDATE SET
  data = CASE WHEN erased THEN excluded.data ELSE data END,
  pinned = max(pinned, excluded.pinned),
  erased = 0
WHERE erased OR pinned < excluded.pinned

-- name: content
-- One body, or the fact that it is a file.
SELECT bytes, pinned, data FROM content WHERE topic = ? AND sha256 = ? AND NOT erased

-- name: content_facts
-- What is known of a body without reading it.
SELECT bytes, pinned FROM content WHERE topic = ? AND sha256 = ? AND NOT erased

-- name: erase_content
-- Overwrite a body in its place: as many zeros as it had bytes.
UPDATE content SET erased = 1, data = zeroblob(length(data)) WHERE topic = ? AND sha256 = ? AND data IS NOT NULL

-- name: erase_file
-- Take back the name of a body that is a file.
UPDATE content SET erased = 1 WHERE topic = ? AND sha256 = ? AND data IS NULL

-- name: add_to_counter
-- Count.
INSERT INTO counter (topic, name, amount) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET amount = amount + excluded.amount

-- name: counters
-- Counters whose names begin alike.
SELECT name, amount FROM counter WHERE topic = ? AND name BETWEEN ? AND ? ORDER BY name

-- name: setting
-- A fact about the whole store.
SELECT value FROM setting WHERE name = ?

-- name: put_setting
-- State a fact about the whole store.
INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value
