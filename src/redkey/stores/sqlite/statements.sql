-- Every statement that the store runs: name, purpose, SQL.

-- name: topics
-- All topics in the order of creation.
SELECT id FROM topic ORDER BY number

-- name: topic_number
-- The number of a topic, which other tables use.
SELECT number FROM topic WHERE id = ?

-- name: insert_topic
-- Create a topic.
INSERT INTO topic (id) VALUES (?) RETURNING number

-- name: last_local_topic
-- The highest number of a local topic.
SELECT max(CAST(substr(id, 5) AS INTEGER)) FROM topic WHERE id GLOB '1.0.[0-9]*'

-- name: insert_record
-- Append to the ledger.
INSERT INTO record (position, timestamp, payer, running_hash, subjects, wire) VALUES (?, ?, ?, ?, ?, ?)

-- name: index_block
-- Add complete blocks of records to the event index.
INSERT OR IGNORE INTO event (subject, position)
SELECT subject.value, position FROM record, json_each(subjects) AS subject
WHERE position > ? AND position <= ? ORDER BY 1, 2

-- name: head
-- The last record of a topic.
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
-- Records with a subject, in order: from the index, then from the incomplete block.
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
-- Records with a subject, newest first: from the incomplete block, then from the index.
SELECT position, timestamp, payer, running_hash, wire FROM record WHERE position IN (
  SELECT position FROM event WHERE subject = :subject AND position < :after AND position >= :first
  UNION ALL
  SELECT position FROM record
  WHERE position > (SELECT max(position) & ~255 FROM record WHERE position BETWEEN :first AND :last)
    AND position < :after AND instr(subjects, :quoted)
    AND EXISTS (SELECT 1 FROM json_each(subjects) WHERE value = :subject)
  ORDER BY position DESC LIMIT :limit
) ORDER BY position DESC

-- name: wire_ids
-- Wire ids that begin with a prefix: from the index, and from the block that is not complete.
SELECT subject FROM event
WHERE subject >= :prefix AND subject < :beyond AND position >> 40 = :topic
UNION
SELECT json_extract(subjects, '$[0]') AS marked FROM record
WHERE position > (SELECT max(position) & ~255 FROM record WHERE position BETWEEN :topic << 40 AND (:topic + 1 << 40) - 1)
  AND position < :topic + 1 << 40 AND marked >= :prefix AND marked < :beyond
ORDER BY 1 LIMIT :limit

-- name: insert_tile
-- Store a complete Merkle tile.
INSERT INTO tile (topic, level, number, hashes) VALUES (?, ?, ?, ?)

-- name: tile
-- One complete Merkle tile.
SELECT hashes FROM tile WHERE topic = ? AND level = ? AND number = ?

-- name: put_checkpoint
-- Store a signed checkpoint; it replaces one of the same size, which another key signed.
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
-- Delete an entity of the read model.
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

-- name: count_listed
-- How many entities one list has; this reads only the index.
SELECT count(*) FROM row WHERE topic = ? AND kind = ? AND listed = ? AND listed <> ''

-- name: due
-- Topics in which a timer may be due, the earliest first.
SELECT id FROM due JOIN topic ON number = due.topic WHERE at <= ? ORDER BY at LIMIT ?

-- name: due_of
-- When the next timer of a topic is due.
SELECT at FROM due WHERE topic = ?

-- name: put_due
-- Set when the next timer of a topic is due.
INSERT INTO due (topic, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at

-- name: delete_due
-- Record that no timer of a topic is pending.
DELETE FROM due WHERE topic = ?

-- name: put_content
-- Store a body. An erased body is restored; an existing one can only become pinned.
INSERT INTO content (topic, sha256, bytes, pinned, erased, data) VALUES (?, ?, ?, ?, 0, ?)
ON CONFLICT (topic, sha256) DO UPDATE SET
  data = CASE WHEN erased THEN excluded.data ELSE data END,
  pinned = max(pinned, excluded.pinned),
  erased = 0
WHERE erased OR pinned < excluded.pinned

-- name: content
-- One body; null data if it is a file.
SELECT bytes, pinned, data FROM content WHERE topic = ? AND sha256 = ? AND NOT erased

-- name: content_facts
-- The size and pin of a body, without its data.
SELECT bytes, pinned FROM content WHERE topic = ? AND sha256 = ? AND NOT erased

-- name: erase_content
-- Overwrite a body in place with zeros of the same length.
UPDATE content SET erased = 1, data = zeroblob(length(data)) WHERE topic = ? AND sha256 = ? AND data IS NOT NULL

-- name: erase_file
-- Mark a body that is a file as erased.
UPDATE content SET erased = 1 WHERE topic = ? AND sha256 = ? AND data IS NULL

-- name: add_to_counter
-- Add to a counter.
INSERT INTO counter (topic, name, amount) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET amount = amount + excluded.amount

-- name: counters
-- Counters with a common name prefix.
SELECT name, amount FROM counter WHERE topic = ? AND name BETWEEN ? AND ? ORDER BY name

-- name: setting
-- One setting of the whole store.
SELECT value FROM setting WHERE name = ?

-- name: put_setting
-- Store a setting of the whole store.
INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value
