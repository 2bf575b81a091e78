-- Supabase: members read the views of their workspace through the Data API. Add `redkey` to the exposed schemas. A user
-- belongs to the workspace in `app_metadata.workspace_id`, or in `workspace_id`, which an access token hook adds. `anon`
-- gets nothing, and no role may write.
GRANT USAGE ON SCHEMA redkey TO authenticated, service_role;
GRANT SELECT ON redkey.topic, redkey.record, redkey.row TO authenticated, service_role;
GRANT SELECT ON redkey.entities, redkey.tasks, redkey.agents, redkey.workflows, redkey.events, redkey.claims,
  redkey.agent_tasks, redkey.agent_definitions, redkey.inbox TO authenticated, service_role;
