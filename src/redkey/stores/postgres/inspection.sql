-- What fsck asks of the database, each under `-- name:` with one line on what it is for.

-- name: stored_records
-- Records in order with all that is stored of them.
SELECT sequence, timestamp, payer, running_hash, subjects, wire FROM redkey.record
WHERE topic = %s AND sequence > %s ORDER BY sequence LIMIT %s

-- name: settings
-- All facts about the whole store; which timeline was confirmed is one of this database, not of the ledger.
SELECT name, value FROM redkey.setting WHERE name <> 'timeline' ORDER BY name

-- name: heads_differ
-- Topics whose head is not their last record.
SELECT id, head.sequence, coalesce(last.sequence, 0) FROM redkey.topic AS head
LEFT JOIN LATERAL (
  SELECT sequence, timestamp, running_hash FROM redkey.record WHERE topic = head.number ORDER BY sequence DESC LIMIT 1
) AS last ON true
WHERE (head.sequence, head.timestamp) IS DISTINCT FROM (coalesce(last.sequence, 0), coalesce(last.timestamp, 0))
  OR (last.running_hash IS NOT NULL AND last.running_hash <> head.running_hash)

-- name: strays
-- Tables that have something of a topic that does not exist.
SELECT DISTINCT found.name, found.topic FROM (
  SELECT 'record' AS name, topic FROM redkey.record
  UNION SELECT 'tile', topic FROM redkey.tile
  UNION SELECT 'checkpoint', topic FROM redkey.checkpoint
  UNION SELECT 'row', topic FROM redkey.row
  UNION SELECT 'content', topic FROM redkey.content
  UNION SELECT 'counter', topic FROM redkey.counter
) AS found WHERE NOT EXISTS (SELECT 1 FROM redkey.topic WHERE number = found.topic)

-- name: tile_counts
-- How many tiles a topic has by level.
SELECT level, count(*) FROM redkey.tile WHERE topic = %s GROUP BY level

-- name: checkpoints_up
-- Signed checkpoints, smallest first, a page at a time.
SELECT size, note FROM redkey.checkpoint WHERE topic = %s AND size > %s ORDER BY size LIMIT %s

-- name: bodies
-- Bodies by their hashes, a page at a time.
SELECT sha256, bytes, pinned, erased, data, upload FROM redkey.content
WHERE topic = %s AND sha256 > %s ORDER BY sha256 LIMIT %s

-- name: body_known
-- The body of this name, erased or not.
SELECT bytes, erased FROM redkey.content WHERE topic = %s AND sha256 = %s

-- name: placed
-- A row with the number of its place in the table.
SELECT (ctid::text::point)[0]::bigint * 292 + (ctid::text::point)[1]::bigint, kind, key, body, listed, position
FROM redkey.row WHERE topic = %s AND kind = %s AND key = %s

-- name: places
-- Rows by kind and key with the numbers of their places, a page at a time.
SELECT (ctid::text::point)[0]::bigint * 292 + (ctid::text::point)[1]::bigint, kind, key
FROM redkey.row WHERE topic = %s AND (kind, key) > (%s, %s) ORDER BY kind, key LIMIT %s

-- name: index_size
-- How many entries the event index has.
SELECT count(*) FROM redkey.event

-- name: missing_entries
-- Subjects of records that the index does not have.
SELECT sequence, subject FROM redkey.record, unnest(subjects) AS subject
WHERE topic = %s AND sequence > %s AND sequence <= %s AND NOT EXISTS (
  SELECT 1 FROM redkey.event
  WHERE event.topic = record.topic AND event.subject = subject.subject AND event.sequence = record.sequence
)

-- name: extra_entries
-- Entries of the index that no record of a complete block has among its subjects.
SELECT sequence, subject FROM redkey.event AS entry WHERE topic = %s AND NOT EXISTS (
  SELECT 1 FROM redkey.record
  WHERE record.topic = entry.topic AND record.sequence = entry.sequence AND record.sequence <= %s
    AND entry.subject = ANY(record.subjects)
)

-- name: repeated_wires
-- Wire ids that the index has more than once.
SELECT subject FROM redkey.event WHERE subject >= '#' AND subject < '$' GROUP BY subject HAVING count(*) > 1
