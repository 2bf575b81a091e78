"""Frameworks at work on a queue: RedKey's worker claims, heartbeats and completes; the framework does one task.

    from redkey.adapters import langgraph
    rk.worker(queue="research")(langgraph.handler(graph))

No framework is imported before its adapter's handler is made. The framework's own queue is never the queue.
"""
