"""Adapters for agent frameworks: RedKey's worker claims, heartbeats and completes; the framework works on one task.

    from redkey.adapters import langgraph
    rk.worker(queue="research")(langgraph.handler(graph))

Tools of any framework can `asking.ask` a human inside `asking.stoppable(ctx)`. A framework is imported only when its
handler is created. The framework's own queue is never used.
"""
