-- Every statement the store runs, each under `-- name:` with one line on what it is for.

-- name: begin
-- Begin a unit: after a wait for the lock, the next statement must see the newest commit.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: begin_snapshot
-- Begin reads that must agree.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: lock_timeout
-- How long a unit waits for its lock.
SELECT set_config('lock_timeout', %s, true)

-- name: transaction_timeout
-- How long a unit may take once it has the lock: PostgreSQL then ends it, also when its client is frozen.
SELECT set_config('transaction_timeout', %s, true)

-- name: lock_topic
-- Lock a topic and read its head, the name of this transaction and the clock of the database.
SELECT number, sequence, timestamp, running_hash, units, pg_current_xact_id()::text,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM redkey.topic WHERE id = %s FOR UPDATE

-- name: try_lock_topic
-- The same without waiting: no row when another unit has the lock.
SELECT number, sequence, timestamp, running_hash, units, pg_current_xact_id()::text,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM redkey.topic WHERE id = %s FOR UPDATE SKIP LOCKED

-- name: lock_store
-- Lock what belongs to no topic, and read the name of this transaction.
SELECT pg_advisory_xact_lock(1380674407, 0), pg_current_xact_id()::text

-- name: try_lock_store
-- The same without waiting.
SELECT pg_try_advisory_xact_lock(1380674407, 0), pg_current_xact_id()::text

-- name: clock
-- The clock of the database in microseconds.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: xact_status
-- How a transaction ended.
SELECT pg_xact_status(%s::xid8)

-- name: unit_facts
-- What else a unit begins with, once it has the lock: from now on it may take so long; when something is due next in its
-- topic; the timeline that servers have confirmed, and the one that the database is on.
SELECT set_config('transaction_timeout', %(seconds)s, true),
  (SELECT number FROM redkey.topic WHERE id = %(topic)s),
  (SELECT at FROM redkey.due WHERE topic = (SELECT number FROM redkey.topic WHERE id = %(topic)s)),
  (SELECT value::integer FROM redkey.setting WHERE name = 'timeline'),
  ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer

-- name: topics
-- All topics in the order in which they began.
SELECT id FROM redkey.topic ORDER BY number

-- name: topic_number
-- The number that stands for a topic everywhere else.
SELECT number FROM redkey.topic WHERE id = %s

-- name: insert_topic
-- Begin a topic.
INSERT INTO redkey.topic (id) VALUES (%s)

-- name: last_local_topic
-- The local topic that was created last: the next one follows it.
SELECT id FROM redkey.topic WHERE id LIKE '1.0.%%' ORDER BY number DESC LIMIT 1

-- name: heads
-- The heads of some topics.
SELECT id, sequence FROM redkey.topic WHERE id = ANY(%s)

-- name: head
-- The last record of a topic.
SELECT sequence, timestamp, running_hash FROM redkey.topic WHERE number = %s

-- name: put_head
-- Set the head at the end of a unit.
UPDATE redkey.topic SET sequence = %s, timestamp = %s, running_hash = %s, units = units + 1 WHERE number = %s

-- name: insert_records
-- Append to the ledger. Subjects come joined by a control character, which no id contains.
INSERT INTO redkey.record (topic, sequence, timestamp, payer, running_hash, subjects, wire)
SELECT %s, sequence, timestamp, payer, running_hash, string_to_array(subjects, E'\x1f'), wire
FROM unnest(%b::bigint[], %b::bigint[], %b::text[], %b::bytea[], %b::text[], %b::bytea[])
  AS new (sequence, timestamp, payer, running_hash, subjects, wire)

-- name: index_block
-- Make the records of complete blocks findable by their subjects.
INSERT INTO redkey.event (topic, subject, sequence)
SELECT topic, subject, sequence FROM redkey.record, unnest(subjects) AS subject
WHERE topic = %s AND sequence > %s AND sequence <= %s ON CONFLICT DO NOTHING

-- name: records_after
-- Records in order.
SELECT sequence, timestamp, payer, running_hash, wire FROM redkey.record
WHERE topic = %s AND sequence > %s ORDER BY sequence LIMIT %s

-- name: records_before
-- Records newest first, between two places.
SELECT sequence, timestamp, payer, running_hash, wire FROM redkey.record
WHERE topic = %s AND sequence > %s AND sequence < %s ORDER BY sequence DESC LIMIT %s

-- name: records_containing
-- Records whose wires contain some bytes, newest first, between two places.
SELECT sequence, timestamp, payer, running_hash, wire FROM redkey.record
WHERE topic = %s AND sequence > %s AND sequence < %s AND position(%s::bytea IN wire) > 0
ORDER BY sequence DESC LIMIT %s

-- name: events_after
-- Records with a subject, in order: from the index, then from the block that is not complete.
SELECT sequence, timestamp, payer, running_hash, wire FROM redkey.record
WHERE topic = %(topic)s AND sequence IN (
  (SELECT sequence FROM redkey.event
   WHERE topic = %(topic)s AND subject = %(subject)s AND sequence > %(after)s ORDER BY sequence LIMIT %(limit)s)
  UNION ALL
  (SELECT sequence FROM redkey.record
   WHERE topic = %(topic)s
     AND sequence > greatest(%(after)s, (SELECT max(sequence) & ~255::bigint FROM redkey.record WHERE topic = %(topic)s))
     AND %(subject)s = ANY(subjects) ORDER BY sequence LIMIT %(limit)s)
) ORDER BY sequence LIMIT %(limit)s

-- name: events_before
-- Records with a subject, newest first: from the block that is not complete, then from the index.
SELECT sequence, timestamp, payer, running_hash, wire FROM redkey.record
WHERE topic = %(topic)s AND sequence IN (
  (SELECT sequence FROM redkey.event
   WHERE topic = %(topic)s AND subject = %(subject)s AND sequence < %(after)s ORDER BY sequence DESC LIMIT %(limit)s)
  UNION ALL
  (SELECT sequence FROM redkey.record
   WHERE topic = %(topic)s
     AND sequence > (SELECT max(sequence) & ~255::bigint FROM redkey.record WHERE topic = %(topic)s)
     AND sequence < %(after)s AND %(subject)s = ANY(subjects) ORDER BY sequence DESC LIMIT %(limit)s)
) ORDER BY sequence DESC LIMIT %(limit)s

-- name: events_named
-- The newest records of complete blocks with some subjects, newest first.
SELECT wanted.subject, record.* FROM unnest(%s::text[]) AS wanted (subject)
CROSS JOIN LATERAL (
  SELECT topic, sequence FROM redkey.event
  WHERE topic = %s AND event.subject = wanted.subject ORDER BY sequence DESC LIMIT %s
) AS entry
CROSS JOIN LATERAL (
  SELECT sequence, timestamp, payer, running_hash, wire FROM redkey.record
  WHERE topic = %s AND sequence = entry.sequence LIMIT 1
) AS record ORDER BY record.sequence DESC

-- name: events_named_last
-- The records after the last complete block with some subjects, newest first.
SELECT subject, sequence, timestamp, payer, running_hash, wire FROM (
  SELECT sequence, timestamp, payer, running_hash, subjects, wire FROM redkey.record
  WHERE topic = %(topic)s
    AND sequence > (SELECT max(sequence) & ~255::bigint FROM redkey.record WHERE topic = %(topic)s)
  ORDER BY sequence DESC LIMIT 256
) AS last, unnest(subjects) AS subject WHERE subject = ANY(%(subjects)s) ORDER BY sequence DESC

-- name: wire_ids
-- Wire ids that begin with a prefix: from the index, and from the block that is not complete.
(SELECT DISTINCT subject FROM redkey.event
 WHERE topic = %(topic)s AND subject >= %(prefix)s AND subject < %(beyond)s ORDER BY subject LIMIT %(limit)s)
UNION
(SELECT subjects[1] COLLATE "C" FROM redkey.record
 WHERE topic = %(topic)s
   AND sequence > (SELECT max(sequence) & ~255::bigint FROM redkey.record WHERE topic = %(topic)s)
   AND subjects[1] COLLATE "C" >= %(prefix)s AND subjects[1] COLLATE "C" < %(beyond)s)
ORDER BY subject LIMIT %(limit)s

-- name: running_hash
-- The running hash of one record.
SELECT running_hash FROM redkey.record WHERE topic = (SELECT number FROM redkey.topic WHERE id = %s) AND sequence = %s

-- name: insert_tiles
-- Store complete Merkle tiles.
INSERT INTO redkey.tile (topic, level, number, hashes)
SELECT %s, level, number, hashes FROM unnest(%b::integer[], %b::bigint[], %b::bytea[]) AS new (level, number, hashes)

-- name: tile
-- One complete Merkle tile.
SELECT hashes FROM redkey.tile WHERE topic = %s AND level = %s AND number = %s

-- name: put_checkpoint
-- Store a signed checkpoint; one signed again at the same size (another key) takes its place.
INSERT INTO redkey.checkpoint (topic, size, note) VALUES (%s, %s, %s)
ON CONFLICT (topic, size) DO UPDATE SET note = excluded.note

-- name: checkpoints
-- Signed checkpoints, largest first.
SELECT size, note FROM redkey.checkpoint WHERE topic = %s ORDER BY size DESC LIMIT %s

-- name: put_rows
-- Write entities of the read model.
INSERT INTO redkey.row (topic, kind, key, body, listed, position)
SELECT %s, kind, key, body, listed, position
FROM unnest(%b::text[], %b::text[], %b::bytea[], %b::text[], %b::bigint[]) AS new (kind, key, body, listed, position)
ON CONFLICT (topic, kind, key)
DO UPDATE SET body = excluded.body, listed = excluded.listed, position = excluded.position

-- name: delete_rows
-- Delete entities from the read model.
DELETE FROM redkey.row USING unnest(%b::text[], %b::text[]) AS gone (kind, key)
WHERE row.topic = %s AND row.kind = gone.kind AND row.key = gone.key

-- name: row
-- One entity.
SELECT kind, key, body, listed, position FROM redkey.row WHERE topic = %s AND kind = %s AND key = %s

-- name: rows_named
-- Some entities.
SELECT found.* FROM unnest(%b::text[], %b::text[]) AS wanted (kind, key)
CROSS JOIN LATERAL (
  SELECT kind, key, body, listed, position FROM redkey.row
  WHERE topic = %s AND row.kind = wanted.kind AND row.key = wanted.key LIMIT 1
) AS found

-- name: rows
-- Entities of a kind by key.
SELECT kind, key, body, listed, position FROM redkey.row
WHERE topic = %s AND kind = %s AND key > %s ORDER BY key LIMIT %s

-- name: rows_listed
-- Entities of one list by position and key.
SELECT kind, key, body, listed, position FROM redkey.row
WHERE topic = %s AND kind = %s AND listed = %s AND listed <> '' AND (position, key) > (%s, %s)
ORDER BY position, key LIMIT %s

-- name: count_listed
-- How many entities one list has; the index of lists answers it alone.
SELECT count(*) FROM redkey.row WHERE topic = %s AND kind = %s AND listed = %s AND listed <> ''

-- name: due
-- Topics in which something may be due, the earliest first.
SELECT id FROM redkey.due JOIN redkey.topic ON number = due.topic WHERE at <= %s ORDER BY at LIMIT %s

-- name: put_due
-- Set when something is due next in a topic.
INSERT INTO redkey.due (topic, at) VALUES (%s, %s) ON CONFLICT (topic) DO UPDATE SET at = excluded.at

-- name: delete_due
-- Nothing is due in a topic any more.
DELETE FROM redkey.due WHERE topic = %s

-- name: put_contents
-- Store bodies; one that was erased comes back, one that is there can only become pinned.
INSERT INTO redkey.content AS stored (topic, sha256, bytes, pinned, data, upload)
SELECT %s, sha256, bytes, pinned, data, upload
FROM unnest(%s::bytea[], %s::bigint[], %s::boolean[], %s::bytea[], %s::uuid[])
  AS new (sha256, bytes, pinned, data, upload)
ON CONFLICT (topic, sha256) DO UPDATE SET
  data = CASE WHEN stored.erased THEN excluded.data ELSE stored.data END,
  upload = CASE WHEN stored.erased THEN excluded.upload ELSE stored.upload END,
  pinned = stored.pinned OR excluded.pinned,
  erased = false
WHERE stored.erased OR (excluded.pinned AND NOT stored.pinned)

-- name: content
-- One body, or the upload that has its pieces.
SELECT bytes, pinned, data, upload FROM redkey.content WHERE topic = %s AND sha256 = %s AND NOT erased

-- name: contents_named
-- Some small bodies.
SELECT wanted.sha256, found.* FROM unnest(%s::bytea[]) AS wanted (sha256)
CROSS JOIN LATERAL (
  SELECT bytes, pinned, data, upload FROM redkey.content
  WHERE topic = %s AND content.sha256 = wanted.sha256 AND NOT erased AND upload IS NULL AND bytes <= 65536 LIMIT 1
) AS found

-- name: content_facts
-- What is known of a body without reading it.
SELECT bytes, pinned FROM redkey.content WHERE topic = %s AND sha256 = %s AND NOT erased

-- name: erase_content
-- Erase a body for readers; vacuum removes it from the files later.
UPDATE redkey.content SET erased = true, data = NULL, upload = NULL WHERE topic = %s AND sha256 = %s

-- name: begin_upload
-- Begin to stage a body.
INSERT INTO redkey.upload (id) VALUES (%s) ON CONFLICT DO NOTHING

-- name: put_piece
-- Stage a piece of a body.
WITH seen AS (UPDATE redkey.upload SET seen = now() WHERE id = %(upload)s)
INSERT INTO redkey.piece (upload, number, data) VALUES (%(upload)s, %(number)s, %(data)s) ON CONFLICT DO NOTHING

-- name: piece
-- A piece of a body.
SELECT data FROM redkey.piece WHERE upload = %s AND number = %s

-- name: delete_upload
-- Delete a staged body with its pieces, unless it became content.
DELETE FROM redkey.upload WHERE id = %s
AND NOT EXISTS (SELECT 1 FROM redkey.content WHERE content.upload = redkey.upload.id)

-- name: delete_abandoned
-- Delete the bodies that no unit adopted within a day.
DELETE FROM redkey.upload WHERE seen < now() - interval '1 day'
AND NOT EXISTS (SELECT 1 FROM redkey.content WHERE content.upload = redkey.upload.id)

-- name: add_to_counters
-- Count.
INSERT INTO redkey.counter AS stored (topic, name, amount)
SELECT %s, name, amount FROM unnest(%s::text[], %s::bigint[]) AS new (name, amount)
ON CONFLICT (topic, name) DO UPDATE SET amount = stored.amount + excluded.amount

-- name: counters
-- Counters whose names begin alike.
SELECT name, amount FROM redkey.counter WHERE topic = %s AND name BETWEEN %s AND %s ORDER BY name

-- name: setting
-- A fact about the whole store.
SELECT value FROM redkey.setting WHERE name = %s

-- name: put_settings
-- Set facts about the whole store.
INSERT INTO redkey.setting (name, value) SELECT name, value FROM unnest(%s::text[], %s::text[]) AS new (name, value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: insert_setting
-- Set a fact that nobody has set yet.
INSERT INTO redkey.setting (name, value) VALUES (%s, %s)

-- name: notify
-- Announce commits to the other servers.
SELECT pg_notify('redkey', %s)

-- name: advisory_lock
-- Wait for a lock by its number, until the transaction ends.
SELECT pg_advisory_xact_lock(1380674407, %s)

-- name: try_advisory_lock
-- The same without waiting.
SELECT pg_try_advisory_xact_lock(1380674407, %s)

-- name: secret
-- One secret of the log, sealed.
SELECT sealed FROM redkey.secret WHERE name = %s

-- name: secrets
-- The secrets of a folder, oldest first, with their public parts.
SELECT name, public, sealed IS NOT NULL FROM redkey.secret WHERE name BETWEEN %s AND %s ORDER BY name

-- name: insert_secret
-- Store a new secret, sealed; no row when there is one of this name.
INSERT INTO redkey.secret (name, public, sealed) VALUES (%s, %s, %s) ON CONFLICT (name) DO NOTHING RETURNING name

-- name: delete_secret
-- Delete a secret; its public part stays.
UPDATE redkey.secret SET sealed = NULL WHERE name = %s

-- name: renew_server
-- Say that a server is alive, and which version and rules it knows.
INSERT INTO redkey.server (id, url, version, rules) VALUES (%s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET seen = now(), version = excluded.version, rules = excluded.rules

-- name: count_servers
-- How many servers are alive.
SELECT count(*) FROM redkey.server WHERE seen > now() - interval '10 seconds'

-- name: servers_behind
-- Registered servers that do not know some rules yet.
SELECT url, version FROM redkey.server WHERE rules < %s ORDER BY url

-- name: delete_server
-- A server stops.
DELETE FROM redkey.server WHERE id = %s

-- name: delete_servers
-- Delete the rows of servers that are gone for ten minutes, and of dead ones whose heads another server took over.
DELETE FROM redkey.server WHERE seen < now() - interval '10 minutes' OR id = ANY(%s)

-- name: server_known
-- Whether a server has a row.
SELECT 1 FROM redkey.server WHERE id = %s

-- name: first_timeline
-- Record the timeline of a new ledger.
INSERT INTO redkey.setting (name, value)
VALUES ('timeline', ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer::text)
ON CONFLICT DO NOTHING

-- name: timeline
-- The timeline that servers have confirmed, and the one that the database is on.
SELECT value::integer, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
FROM redkey.setting WHERE name = 'timeline'

-- name: lost_heads
-- Of some heads those that the database does not have, with the head that it has instead.
SELECT known.id, known.sequence, coalesce(topic.sequence, 0)
FROM unnest(%s::text[], %s::bigint[], %s::bytea[]) AS known (id, sequence, running_hash)
LEFT JOIN redkey.topic ON topic.id = known.id
LEFT JOIN redkey.record ON record.topic = topic.number AND record.sequence = known.sequence
WHERE coalesce(topic.sequence, 0) < known.sequence
  OR (known.running_hash <> '' AND record.running_hash <> known.running_hash)
ORDER BY known.id

-- name: confirm_timeline
-- Say that the database has everything that some servers know of, or what is missing.
UPDATE redkey.server SET confirmed = %s, missing = %s WHERE id = ANY(%s)

-- name: unconfirmed
-- Servers that have not confirmed a timeline.
SELECT url, missing FROM redkey.server WHERE confirmed <> %s ORDER BY url

-- name: accept_timeline
-- Open the ledger for writing on the timeline that the database is on.
UPDATE redkey.setting SET value = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer::text
WHERE name = 'timeline'

-- name: writable
-- Whether the database takes writes, and whether it is a replica.
SELECT current_setting('transaction_read_only')::boolean, pg_is_in_recovery()
