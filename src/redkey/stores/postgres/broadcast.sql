-- Supabase Realtime, if wanted: one private message for each commit, on the channel `redkey:WORKSPACE`, with the last
-- sequence. It runs inside the commit, so a failure of Realtime is a warning and never a failed commit.
CREATE OR REPLACE FUNCTION redkey.broadcast() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  workspace text;
BEGIN
  SELECT redkey.as_json(body) ->> 'workspace_id' INTO workspace FROM redkey.row
  WHERE topic = new.number AND kind = 'workspace' AND key = '';
  IF workspace IS NOT NULL THEN
    PERFORM realtime.send(jsonb_build_object('sequence', new.sequence), 'committed', 'redkey:' || workspace, true);
  END IF;
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING 'redkey.broadcast: %', SQLERRM;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER broadcast AFTER UPDATE ON redkey.topic
FOR EACH ROW WHEN (new.sequence > old.sequence) EXECUTE FUNCTION redkey.broadcast();

DROP POLICY IF EXISTS redkey_workspace_listens ON realtime.messages;
CREATE POLICY redkey_workspace_listens ON realtime.messages FOR SELECT TO authenticated
USING (realtime.topic() = 'redkey:' || redkey.claimed_workspace());
