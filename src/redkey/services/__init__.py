"""The write path (coordinator), queries, timers, subscriptions and fsck. Adapters are passed in through ports."""
