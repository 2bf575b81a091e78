"""Mail: sends one-time codes by a program that the operator names, such as `sendmail -t -i`.

Without a program nothing is sent, and admins pass codes on. Messages are sent beside the request, so that its duration
does not show whether an address is known.
"""

from __future__ import annotations

import asyncio
import shlex
from email.message import EmailMessage

import structlog

from redkey.config import Login

_SECONDS = 30.0
# Messages sent at once, and messages that wait; more are dropped and logged.
_AT_ONCE, _WAITING = 4, 200

_log = structlog.get_logger("redkey.mail")


class Mail:
    """Sends messages by the configured program."""

    def __init__(self, config: Login) -> None:
        self._command, self._from = shlex.split(config.mail_command), config.mail_from
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_on(self) -> bool:
        """True if there is a program that sends."""
        return bool(self._command)

    def post(self, address: str, subject: str, text: str) -> None:
        """Send a message soon; log a failure without the message's text."""
        if not self.is_on:
            return
        if len(self._tasks) >= _WAITING:
            _log.error("a message was dropped: too many are waiting")
            return
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._from, address, subject
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        task = asyncio.get_running_loop().create_task(self._send(message.as_bytes()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Wait until all messages are sent."""
        await asyncio.gather(*self._tasks)

    async def _send(self, message: bytes) -> None:
        async with self._room:
            try:
                program = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                )
            except OSError as cause:
                _log.error("the mail program did not start", reason=cause.strerror)
                return
            try:
                await asyncio.wait_for(program.communicate(message), _SECONDS)
            except TimeoutError:
                program.kill()
                await program.wait()
            if program.returncode:
                _log.error("the mail program failed", status=program.returncode)
