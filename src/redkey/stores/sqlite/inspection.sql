-- The queries that fsck runs on redkey.db: name, purpose, SQL.

-- name: stored_records
-- Records in order, with all columns.
SELECT position, timestamp, payer, running_hash, subjects, wire FROM record
WHERE position > ? AND position <= ? ORDER BY position LIMIT ?

-- name: stored_record
-- One record; used if its neighbours cannot be read.
SELECT position, timestamp, payer, running_hash, subjects, wire FROM record WHERE position = ?

-- name: next_position
-- The first record after a position, which shows the next topic with records.
SELECT position FROM record WHERE position >= ? ORDER BY position LIMIT 1

-- name: last_entry
-- The last record of a topic in the event index.
SELECT max(position) FROM event WHERE position BETWEEN ? AND ?

-- name: settings
-- All facts about the whole store.
SELECT name, value FROM setting ORDER BY name

-- name: tile_counts
-- How many tiles a topic has by level.
SELECT level, count(*) FROM tile WHERE topic = ? GROUP BY level

-- name: checkpoints_up
-- Signed checkpoints, smallest first, a page at a time.
SELECT size, note FROM checkpoint WHERE topic = ? AND size > ? ORDER BY size LIMIT ?

-- name: bodies
-- Bodies by their hashes, a page at a time.
SELECT sha256, bytes, pinned, erased, data FROM content WHERE topic = ? AND sha256 > ? ORDER BY sha256 LIMIT ?

-- name: file_bodies
-- Bodies that are files, a page at a time.
SELECT sha256, bytes FROM content
WHERE topic = ? AND sha256 > ? AND data IS NULL AND NOT erased ORDER BY sha256 LIMIT ?

-- name: body_known
-- Whether a body with this hash exists, erased or not.
SELECT bytes, erased, data IS NULL FROM content WHERE topic = ? AND sha256 = ?

-- name: placed
-- One row with its number.
SELECT number, kind, key, body, listed, position FROM row WHERE topic = ? AND kind = ? AND key = ?

-- name: places
-- Rows by kind and key with their numbers, a page at a time.
SELECT number, kind, key FROM row WHERE topic = ? AND (kind, key) > (?, ?) ORDER BY kind, key LIMIT ?

-- name: index_size
-- How many entries the event index has.
SELECT count(*) FROM event

-- name: missing_entries
-- Subjects of records that are missing in the index.
SELECT position, value FROM record, json_each(CASE WHEN json_valid(subjects) THEN subjects ELSE '[]' END)
WHERE position > ? AND position <= ?
  AND NOT EXISTS (SELECT 1 FROM event WHERE event.subject = value AND event.position = record.position)

-- name: extra_entries
-- Index entries without a record of a complete block that has the subject.
SELECT position, subject FROM event AS entry WHERE position BETWEEN :first AND :last AND NOT EXISTS (
  SELECT 1 FROM record, json_each(CASE WHEN json_valid(subjects) THEN subjects ELSE '[]' END)
  WHERE record.position = entry.position AND value = entry.subject AND record.position <= :complete
)

-- name: repeated_wires
-- Wire ids that occur more than once in the index.
SELECT subject FROM event WHERE subject >= '#' AND subject < '$' GROUP BY subject HAVING count(*) > 1

-- name: next_in_tile
-- The next topic that has tiles.
SELECT topic FROM tile WHERE topic > ? ORDER BY topic LIMIT 1

-- name: next_in_checkpoint
-- The next topic that has checkpoints.
SELECT topic FROM checkpoint WHERE topic > ? ORDER BY topic LIMIT 1

-- name: next_in_row
-- The next topic that has rows.
SELECT topic FROM row WHERE topic > ? ORDER BY topic LIMIT 1

-- name: next_in_content
-- The next topic that has bodies.
SELECT topic FROM content WHERE topic > ? ORDER BY topic LIMIT 1

-- name: next_in_counter
-- The next topic that has counters.
SELECT topic FROM counter WHERE topic > ? ORDER BY topic LIMIT 1

-- name: layout
-- Every table and index as it was created.
SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name

-- name: numbers
-- The numbers of all topics.
SELECT number FROM topic ORDER BY number
