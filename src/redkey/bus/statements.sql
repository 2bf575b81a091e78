-- Every statement that the bus runs on its database: name, purpose, SQL.

-- name: insert_session
-- Create a session.
INSERT INTO session (number, id, name, created_at, updated_at, workspace, policy) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: close_session
-- Close a session; its records stay.
UPDATE session SET status = 'closed', updated_at = ? WHERE number = ?

-- name: put_agent
-- Add or change an agent.
INSERT INTO agent (number, session, id, name, lead, status, place, online, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET name = excluded.name, lead = excluded.lead, status = excluded.status,
    place = excluded.place, online = excluded.online, seen_at = excluded.seen_at

-- name: delete_agent
-- Remove an agent.
DELETE FROM agent WHERE number = ?

-- name: insert_record
-- Add a record.
INSERT INTO record (position, session, ts, id, type, envelope) VALUES (?, ?, ?, ?, ?, ?)

-- name: insert_record_many
-- The same for many rows: one step of SQLite, which runs without the GIL.
INSERT INTO record (position, session, ts, id, type, envelope)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, CAST(value ->> 5 AS BLOB) FROM json_each(?)

-- name: insert_session_record
-- Add to the list that followers of sessions read.
INSERT INTO session_record (position) VALUES (?)

-- name: insert_pending
-- Add a message to the unconfirmed ones of an agent.
INSERT INTO pending (agent, seq) VALUES (?, ?)

-- name: insert_pending_many
-- The same for many rows.
INSERT INTO pending (agent, seq) SELECT value ->> 0, value ->> 1 FROM json_each(?)

-- name: insert_pending_of_message
-- Add one message to the unconfirmed ones of many agents.
INSERT INTO pending (agent, seq) SELECT value, ?1 FROM json_each(?2)

-- name: delete_pending
-- Delete a message that an agent confirmed.
DELETE FROM pending WHERE agent = ? AND seq = ?

-- name: delete_pending_many
-- The same for many rows.
DELETE FROM pending WHERE (agent, seq) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))

-- name: delete_pending_of_message
-- The same for one message and many agents.
DELETE FROM pending WHERE seq = ?1 AND agent IN (SELECT value FROM json_each(?2))

-- name: delete_mailbox
-- Delete all unconfirmed messages of an agent.
DELETE FROM pending WHERE agent = ?

-- name: put_cursor
-- Set the position of a bound session in its ledger.
UPDATE session SET ledger_cursor = ? WHERE number = ?

-- name: put_answer
-- Store the answer to a request with an Idempotency-Key.
INSERT INTO answer (scope, key, request, status, body, at) VALUES (?, ?, ?, ?, ?, ?)

-- name: delete_answers
-- Delete answers that are older than a day.
DELETE FROM answer WHERE at < ?

-- name: answer
-- Find the answer for a key.
SELECT request, status, body FROM answer WHERE scope = ? AND key = ?

-- name: open_sessions
-- The open sessions; read when the bus starts.
SELECT number, id, name, created_at, updated_at, workspace, policy FROM session WHERE status = 'open'
ORDER BY number

-- name: agents
-- The agents of open sessions, in their order.
SELECT agent.session, agent.number, agent.id, agent.name, agent.lead, agent.status, agent.place,
    agent.online, agent.seen_at
FROM agent JOIN session ON session.number = agent.session
WHERE session.status = 'open' ORDER BY agent.session, agent.place, agent.number

-- name: pending
-- The unconfirmed messages of an agent, oldest first.
SELECT seq FROM pending WHERE agent = ? ORDER BY seq

-- name: pending_counts
-- How many unconfirmed messages each agent has.
SELECT agent, count(*) FROM pending GROUP BY agent

-- name: numbers
-- The highest numbers in use.
SELECT (SELECT coalesce(max(number), 0) FROM session), (SELECT coalesce(max(number), 0) FROM agent)

-- name: last_seq
-- The last position between two positions.
SELECT coalesce(max(position), 0) FROM record WHERE position > ? AND position <= ?

-- name: session
-- A session, open or closed.
SELECT number, id, name, created_at, updated_at, workspace, policy, status, ledger_cursor FROM session WHERE id = ?

-- name: sessions
-- All sessions of a workspace by id.
SELECT number, id, name, created_at, updated_at, workspace, policy, status, ledger_cursor FROM session
WHERE workspace = ? AND id > ? AND (? IS NULL OR status = ?) ORDER BY id LIMIT ?

-- name: bound_sessions
-- Open sessions that are bound to a ledger, and their positions in it.
SELECT id, ledger_cursor FROM session WHERE status = 'open' AND ledger_cursor IS NOT NULL ORDER BY number

-- name: records_after
-- The next records of a session.
SELECT position, ts, id, type, envelope FROM record WHERE position > ? AND position <= ? ORDER BY position LIMIT ?

-- name: records_before
-- The last records of a session.
SELECT position, ts, id, type, envelope FROM record WHERE position > ? AND position < ?
ORDER BY position DESC LIMIT ?

-- name: record
-- One record.
SELECT position, ts, id, type, envelope FROM record WHERE position = ?

-- name: record_of_message
-- The record with an id.
SELECT position, ts, id, type, envelope FROM record WHERE session = ? AND id = ?

-- name: record_ids
-- The ids of a session's records.
SELECT id FROM record WHERE session = ?

-- name: session_records_after
-- The next records that created or closed a session of a workspace.
SELECT session_record.number, record.position, record.ts, record.id, record.type, record.envelope
FROM session_record JOIN record ON record.position = session_record.position
JOIN session ON session.number = record.session
WHERE session_record.number > ? AND session.workspace = ? ORDER BY session_record.number LIMIT ?

-- name: aged_sessions
-- Sessions whose first record is old, whether the whole session may be deleted, and the position up to which records may
-- be. An open session keeps its last record, which has its sequence number; one closed long ago is deleted as a whole.
SELECT number, status = 'closed' AND updated_at < :before,
    CASE WHEN status = 'closed' AND updated_at < :before THEN (number + 1) << 40
    ELSE (SELECT max(position) FROM record WHERE position > number << 40 AND position < (number + 1) << 40) END
FROM session WHERE (
    SELECT ts FROM record WHERE position > number << 40 AND position < (number + 1) << 40 ORDER BY position LIMIT 1
) < :before

-- name: forget_records
-- Delete a batch of old records that every agent has confirmed.
DELETE FROM record WHERE position IN (
    SELECT position FROM record
    WHERE position > :session << 40 AND position < :until AND ts < :before AND NOT EXISTS (
        SELECT 1 FROM agent JOIN pending ON pending.agent = agent.number
        WHERE agent.session = :session AND pending.seq = (record.position & 1099511627775)
    ) ORDER BY position LIMIT :limit
)

-- name: forget_session_records
-- Delete the list entries of deleted records.
DELETE FROM session_record WHERE position > :session << 40 AND position < :until
AND position NOT IN (SELECT position FROM record WHERE position > :session << 40 AND position < :until)

-- name: forget_agents
-- Delete the agents of a deleted session.
DELETE FROM agent WHERE session = :session

-- name: put_conversation
-- Store the owner of a conversation.
INSERT INTO conversation (session, id, owner, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: conversation_owner
-- The owner of a conversation.
SELECT owner FROM conversation WHERE session = ? AND id = ?

-- name: forget_conversations
-- Delete old conversations, and those of a deleted session.
DELETE FROM conversation WHERE session = :session AND (:over OR at < :before)

-- name: forget_session
-- Delete a session.
DELETE FROM session WHERE number = :session
