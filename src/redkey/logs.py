"""Logs: structured, one line per event, JSON for machines; secrets are removed."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from redkey.config import Config

# Keys and tokens, wherever they appear; the public part of a key may be shown.
_SECRET = re.compile(r"(rk_[0-9A-Za-z]{4,16})_[0-9A-Za-z]{20,}|eyJ[\w-]+\.[\w-]+\.[\w-]+|PRIVATE\+KEY\+\S+")


def set_up_logs(config: Config) -> None:
    """Send logs to standard error as configured, and warnings of libraries too."""
    as_json = config.log_format == "json" or (config.log_format == "auto" and not sys.stderr.isatty())
    shared: list[Any] = [
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    last: list[Any] = [structlog.processors.format_exc_info] if as_json else []
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last, hide_secrets, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.log_level.upper())
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(config.log_level.upper())),
        cache_logger_on_first_use=True,
    )


def hide_secrets(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Remove keys and tokens from everything that is about to be written."""
    for name, value in event.items():
        if isinstance(value, str) and ("rk_" in value or "eyJ" in value or "PRIVATE" in value):
            event[name] = _SECRET.sub(lambda found: f"{found[1]}_…" if found[1] else "…", value)
    return event
