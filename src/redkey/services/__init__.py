"""The one write path (coordinator), queries, timers, subscriptions, fsck. Adapters come in through ports."""
