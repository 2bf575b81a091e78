-- The read model for people who ask in SQL: views of one workspace each, and row-level security on every table. The
-- ledger stays the only writer: no policy lets anyone write. A reader is the workspace in its claims (Supabase puts them
-- into `request.jwt.claims`); the owner of the tables, superusers and roles with BYPASSRLS read everything.

-- JSON from stored bytes, never jsonb. A text may contain \u0000, which PostgreSQL cannot extract: it becomes U+FFFD.
CREATE FUNCTION redkey.as_json(body bytea) RETURNS json
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT (CASE WHEN position('\x5c7530303030'::bytea IN body) = 0 THEN convert_from(body, 'UTF8')
    ELSE regexp_replace(convert_from(body, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END)::json
$$;

-- A list of texts from JSON; empty when it is absent.
CREATE FUNCTION redkey.as_texts(list json) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT ARRAY(SELECT json_array_elements_text(list)) $$;

-- A ledger time in whole nanoseconds as PostgreSQL's own (microseconds); null for 0.
CREATE FUNCTION redkey.as_time(nanoseconds bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT timestamptz 'epoch' + nullif(nanoseconds, 0) / 1000 * interval '1 microsecond' $$;

-- The same as text with all its digits: 2026-05-06T16:00:01.123456789Z.
CREATE FUNCTION redkey.as_consensus(nanoseconds bigint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT to_char((timestamptz 'epoch' + nanoseconds / 1000000000 * interval '1 second') AT TIME ZONE 'UTC',
    'YYYY-MM-DD"T"HH24:MI:SS') || '.' || lpad((nanoseconds % 1000000000)::text, 9, '0') || 'Z'
$$;

-- The workspace in the reader's claims: `workspace_id`, or the same in `app_metadata`, which only the project sets. After
-- a request the setting is an empty text, not null.
CREATE FUNCTION redkey.claimed_workspace() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(claims ->> 'workspace_id', claims -> 'app_metadata' ->> 'workspace_id')
  FROM (SELECT nullif(current_setting('request.jwt.claims', true), '')::json AS claims) AS asked
$$;

-- The topic of that workspace; null without claims. It reads tables that the reader may not.
CREATE FUNCTION redkey.claimed_topic() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT t.number FROM redkey.setting s JOIN redkey.topic t ON t.id = s.value
  WHERE s.name = 'workspace/' || redkey.claimed_workspace()
$$;

-- Whether the reader reads everything: `role` is what SET ROLE chose, which a security definer does not change.
CREATE FUNCTION redkey.reads_all() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT rolsuper OR rolbypassrls OR pg_has_role(oid, current_user::regrole, 'USAGE') FROM pg_roles
  WHERE rolname = coalesce(nullif(current_setting('role', true), 'none'), session_user)
$$;

-- The document of a task, agent, message or workflow. Other content has no way here: it holds secrets of webhooks.
CREATE FUNCTION redkey.document(topic_number bigint, row_kind text, row_key text) RETURNS json
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT redkey.as_json(c.data)
  FROM redkey.row r JOIN redkey.content c ON c.topic = r.topic AND c.sha256 = decode(redkey.as_json(r.body) ->>
    CASE r.kind WHEN 'agent' THEN 'card_sha256' WHEN 'message' THEN 'body_sha256' ELSE 'content_sha256' END, 'hex')
  WHERE r.topic = topic_number AND r.kind = row_kind AND r.key = row_key
    AND r.kind IN ('task', 'agent', 'message', 'workflow') AND NOT c.erased
    AND (topic_number = redkey.claimed_topic() OR redkey.reads_all())
$$;

-- A task's document; of a task of a plan, its part of the plan.
CREATE FUNCTION redkey.task_document(topic_number bigint, task_id text, plan_task text) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE WHEN whole -> 'plan' IS NULL THEN whole ELSE (
    SELECT part FROM json_array_elements(whole -> 'plan' -> 'tasks') AS part WHERE part ->> 'id' = plan_task LIMIT 1
  ) END
  FROM (SELECT redkey.document(topic_number, 'task', task_id) AS whole) AS stored
$$;

ALTER TABLE redkey.format ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.setting ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.topic ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.record ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.event ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.tile ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.checkpoint ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.row ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.due ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.upload ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.piece ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.content ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.counter ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.server ENABLE ROW LEVEL SECURITY;
ALTER TABLE redkey.secret ENABLE ROW LEVEL SECURITY;

CREATE POLICY workspace_reads ON redkey.topic FOR SELECT USING (number = (SELECT redkey.claimed_topic()));
CREATE POLICY workspace_reads ON redkey.record FOR SELECT USING (topic = (SELECT redkey.claimed_topic()));
-- Not rows of keys, webhooks, parties, drafts and stored replies: these hold what a reader must not see.
CREATE POLICY workspace_reads ON redkey.row FOR SELECT USING (
  topic = (SELECT redkey.claimed_topic()) AND kind IN (
    'task', 'agent', 'role', 'queue', 'message', 'miss', 'workspace', 'workflow', 'step', 'gate', 'definition', 'version',
    'void'
  )
);

-- Every entity with the workspace it belongs to; the other views are parts of it.
CREATE VIEW redkey.entities WITH (security_invoker = true) AS
SELECT redkey.as_json(w.body) ->> 'workspace_id' AS workspace_id, r.topic, r.kind, r.key, redkey.as_json(r.body) AS body
FROM redkey.row r JOIN redkey.row w ON w.topic = r.topic AND w.kind = 'workspace' AND w.key = '';

CREATE VIEW redkey.tasks WITH (security_invoker = true) AS
SELECT e.workspace_id, e.key AS task_id, (body ->> 'attempt')::int AS attempt, body ->> 'state' AS state,
  body ->> 'queue_id' AS queue_id,
  (ARRAY['urgent', 'high', 'normal', 'low'])[(body ->> 'priority')::int + 1] AS priority,
  coalesce(d.document ->> 'title', '') AS title, coalesce(d.document ->> 'description', '') AS description,
  d.document -> 'input' AS input, redkey.as_texts(body -> 'roles') AS roles,
  redkey.as_texts(body -> 'capabilities') AS capabilities, redkey.as_texts(body -> 'outputs') AS outputs,
  body ->> 'context_id' AS context_id, body ->> 'workflow_id' AS workflow_id, body ->> 'plan_task' AS plan_task,
  body ->> 'parent_task_id' AS parent_task_id, redkey.as_texts(body -> 'reference_task_ids') AS reference_task_ids,
  body ->> 'claim_id' AS claim_id, body ->> 'agent_id' AS agent_id,
  redkey.as_time((body ->> 'lease_expires_at')::bigint) AS lease_expires_at,
  body ->> 'winner_agent_id' AS winner_agent_id, coalesce((body ->> 'lease_losses')::int, 0) AS lease_losses,
  body ->> 'blocker_type' AS blocker_type, body ->> 'failure_kind' AS failure_kind,
  redkey.as_time((body ->> 'created_at')::bigint) AS created_at,
  redkey.as_time((body ->> 'updated_at')::bigint) AS updated_at,
  redkey.as_time((body ->> 'started_at')::bigint) AS started_at,
  redkey.as_time((body ->> 'ended_at')::bigint) AS ended_at,
  coalesce((body ->> 'nano_usd')::numeric, 0) / 1000000000 AS cost_usd, d.document -> 'brief' AS brief
FROM redkey.entities e
CROSS JOIN LATERAL (SELECT redkey.task_document(e.topic, e.key, body ->> 'plan_task') AS document OFFSET 0) AS d
WHERE e.kind = 'task';

CREATE VIEW redkey.agents WITH (security_invoker = true) AS
SELECT e.workspace_id, e.key AS agent_id, body ->> 'slug' AS slug, d.document -> 'normal' ->> 'name' AS name,
  d.document ->> 'framework' AS framework, coalesce((body ->> 'active')::boolean, true) AS active,
  coalesce((body ->> 'lost')::boolean, false) AS lost, redkey.as_texts(body -> 'roles') AS roles,
  redkey.as_texts(body -> 'capabilities') AS capabilities, coalesce((body ->> 'live_claims')::int, 0) AS live_claims,
  coalesce(body ->> 'verification', 'unverified') AS verification,
  redkey.as_time((body ->> 'registered_at')::bigint) AS registered_at,
  redkey.as_time((body ->> 'last_act_at')::bigint) AS last_seen_at,
  coalesce((body ->> 'nano_usd')::numeric, 0) / 1000000000 AS cost_usd, d.document -> 'agentCard' AS card
FROM redkey.entities e
CROSS JOIN LATERAL (SELECT redkey.document(e.topic, 'agent', e.key) AS document OFFSET 0) AS d
WHERE e.kind = 'agent';

CREATE VIEW redkey.workflows WITH (security_invoker = true) AS
SELECT e.workspace_id, e.key AS workflow_id, body ->> 'queue_id' AS queue_id, body ->> 'state' AS state,
  body ->> 'definition_id' AS definition_id, (body ->> 'version')::int AS version,
  coalesce((body ->> 'total')::int, 0) AS total, coalesce((body ->> 'done')::int, 0) AS done,
  coalesce((body ->> 'failed')::int, 0) AS failed, coalesce((body ->> 'dropped')::int, 0) AS dropped,
  redkey.as_time((body ->> 'started_at')::bigint) AS started_at,
  redkey.as_time((body ->> 'ended_at')::bigint) AS ended_at,
  coalesce((body ->> 'nano_usd')::numeric, 0) / 1000000000 AS cost_usd
FROM redkey.entities e WHERE e.kind = 'workflow';

-- The ledger: each wire, beside it where the ledger has it (seed 001: HCS metadata). A void record changed nothing.
CREATE VIEW redkey.events WITH (security_invoker = true) AS
SELECT redkey.as_json(w.body) ->> 'workspace_id' AS workspace_id, t.id AS topic_id, r.sequence AS sequence_number,
  redkey.as_consensus(r.timestamp) AS consensus_timestamp, redkey.as_time(r.timestamp) AS recorded_at,
  encode(r.running_hash, 'hex') AS running_hash, wire ->> 'wire_id' AS wire_id, wire ->> 'type' AS type,
  wire ->> 'sender' AS sender, wire -> 'stream' ->> 'stream_id' AS stream_id,
  (wire -> 'stream' ->> 'stream_seq')::bigint AS stream_seq, wire -> 'stream' ->> 'context_id' AS context_id,
  wire -> 'stream' ->> 'correlation_id' AS correlation_id, wire -> 'stream' ->> 'causation_id' AS causation_id,
  wire -> 'state' ->> 'category' AS state, wire -> 'payload' AS payload, wire,
  json_build_object('topic_id', t.id, 'sequence_number', r.sequence,
    'consensus_timestamp', redkey.as_consensus(r.timestamp), 'running_hash', encode(r.running_hash, 'hex')) AS hcs,
  redkey.as_json(v.body) ->> 'reason' AS void_reason
FROM redkey.topic t JOIN redkey.row w ON w.topic = t.number AND w.kind = 'workspace' AND w.key = ''
JOIN (SELECT topic, sequence, timestamp, running_hash, redkey.as_json(wire) AS wire FROM redkey.record) AS r
  ON r.topic = t.number
LEFT JOIN redkey.row v ON v.topic = t.number AND v.kind = 'void' AND v.key = lpad(r.sequence::text, 16, '0');

-- How each attempt to claim ended: claimed, missed or rejected. Looks through the ledger of the workspace; only wires of
-- these types are decoded ('"type":"task.claim' is in each of them: wires are canonical).
CREATE VIEW redkey.claims WITH (security_invoker = true) AS
SELECT c.workspace_id, c.wire -> 'payload' ->> 'claim_id' AS claim_id, c.task_id,
  c.wire -> 'payload' ->> 'agent_id' AS agent_id,
  CASE c.wire ->> 'type' WHEN 'task.claimed' THEN 'claimed' WHEN 'task.claim_missed' THEN 'missed' ELSE 'rejected' END
    AS outcome,
  c.wire -> 'payload' ->> 'reason' AS reason, c.wire -> 'payload' ->> 'winning_claim_id' AS winning_claim_id,
  redkey.as_json(t.body) ->> 'queue_id' AS queue_id, redkey.as_texts(redkey.as_json(t.body) -> 'roles') AS roles,
  redkey.as_time(c.timestamp) AS recorded_at, c.sequence AS sequence_number
FROM (
  SELECT redkey.as_json(w.body) ->> 'workspace_id' AS workspace_id, r.topic, r.sequence, r.timestamp, r.wire,
    coalesce(r.wire -> 'payload' ->> 'task_id', split_part(r.wire -> 'stream' ->> 'stream_id', ':', 2)) AS task_id
  FROM redkey.row w JOIN (
    SELECT topic, sequence, timestamp, redkey.as_json(wire) AS wire FROM redkey.record
    WHERE position(convert_to('"type":"task.claim', 'UTF8') IN wire) > 0 OFFSET 0
  ) AS r ON r.topic = w.topic
  WHERE w.kind = 'workspace' AND w.key = ''
    AND r.wire ->> 'type' IN ('task.claimed', 'task.claim_missed', 'task.claim_rejected')
    AND NOT EXISTS (
      SELECT FROM redkey.row v WHERE v.topic = r.topic AND v.kind = 'void' AND v.key = lpad(r.sequence::text, 16, '0')
    )
) AS c
LEFT JOIN redkey.row t ON t.topic = c.topic AND t.kind = 'task' AND t.key = c.task_id;

-- The names of seed 000: tasks with their Brief Wire.
CREATE VIEW redkey.agent_tasks WITH (security_invoker = true) AS
SELECT workspace_id, task_id AS id, task_id, state AS status, title, roles[1] AS role, agent_id, brief, context_id,
  reference_task_ids, parent_task_id, created_at, updated_at, ended_at AS completed_at
FROM redkey.tasks;

-- Agents with their Agent Card.
CREATE VIEW redkey.agent_definitions WITH (security_invoker = true) AS
SELECT workspace_id, agent_id AS id, slug, name, card AS agent_card, active, roles, registered_at AS created_at
FROM redkey.agents;

-- Messages, each as an Inbox Wire.
CREATE VIEW redkey.inbox WITH (security_invoker = true) AS
SELECT e.workspace_id, e.key AS id, coalesce(a.slug, 'human') AS to_agent, m.sender AS from_agent,
  (body ->> 'priority')::int AS priority, body ->> 'message_type' AS message_type,
  json_build_object('wire', '1.0', 'type', 'inbox', 'sender', m.sender,
    'ts', redkey.as_consensus((body ->> 'sent_at')::bigint),
    'payload', json_build_object('to_agent', coalesce(a.slug, 'human'), 'priority', (body ->> 'priority')::int,
      'message_type', body ->> 'message_type', 'ref_task_id', body ->> 'ref_task_id',
      'subject', coalesce(d.document ->> 'subject', ''),
      'body', coalesce(d.document ->> 'body', d.document ->> 'reason', d.document ->> 'title', ''),
      'action_required', coalesce((body ->> 'action_required')::boolean, false))) AS payload,
  redkey.as_time((body ->> 'sent_at')::bigint) AS created_at, redkey.as_time((body ->> 'read_at')::bigint) AS read_at
FROM redkey.entities e
CROSS JOIN LATERAL (SELECT redkey.document(e.topic, 'message', e.key) AS document OFFSET 0) AS d
CROSS JOIN LATERAL (
  SELECT CASE WHEN body ->> 'sender' LIKE 'human:%' THEN 'human' ELSE regexp_replace(body ->> 'sender', '^agent:', '') END
    AS sender
) AS m
LEFT JOIN LATERAL (
  SELECT redkey.as_json(r.body) ->> 'slug' AS slug FROM redkey.row r
  WHERE r.topic = e.topic AND r.kind = 'agent' AND r.key = regexp_replace(e.body ->> 'to', '^agent:', '')
) AS a ON true
WHERE e.kind = 'message';
