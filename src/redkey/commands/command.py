"""Every command in one type: what a caller may ask of a workspace."""

from __future__ import annotations

from redkey.commands import claims, policies, projects, registry, tasks, webhooks, workflows

# Commands that set up a workspace.
RegistryCommand = (
    policies.SetPolicy
    | policies.RaiseRules
    | policies.AddParty
    | policies.RemoveParty
    | policies.AssignTopic
    | policies.RetireTopic
    | webhooks.SetWebhook
    | webhooks.RemoveWebhook
    | webhooks.SetPush
    | webhooks.RemovePush
    | projects.CreateProject
    | projects.ChangeProject
    | registry.CreateWorkspace
    | registry.CreateKey
    | registry.RevokeKey
    | registry.RegisterAgent
    | registry.UpdateAgent
    | registry.DeactivateAgent
    | registry.HeartbeatAgent
    | registry.CreateRole
    | registry.UpdateRole
    | registry.RemoveRole
    | registry.GrantRole
    | registry.RevokeRole
    | registry.CreateQueue
    | registry.UpdateQueue
    | registry.GrantCredits
    | registry.PriceCredits
    | registry.EraseContent
    | registry.SendMessage
    | registry.ReadMessage
)

Command = (
    claims.ClaimNext
    | claims.ClaimTask
    | claims.HolderCommand
    | tasks.CreateTask
    | tasks.CancelTask
    | tasks.RetryTask
    | tasks.UnblockTask
    | tasks.AddMessage
    | tasks.RaiseConcern
    | workflows.StartWorkflow
    | workflows.PublishDefinition
    | workflows.PauseWorkflow
    | workflows.ResumeWorkflow
    | workflows.CancelWorkflow
    | workflows.ApproveGate
    | workflows.RejectGate
    | RegistryCommand
)
