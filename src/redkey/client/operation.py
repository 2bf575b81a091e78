"""Operations: one declaration for both clients.

A method of a resource is written once, as a function that builds a `Request`. On a `Resource[Sync]` a call returns the
reply, on a `Resource[Async]` an awaitable of it. Parameters are the same, and type checkers and editors know both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from redkey.client.flow import Flowing, Steps
from redkey.client.request import Request
from redkey.shapes.fields import Item, Page
from redkey.shapes.tasks import Task

if TYPE_CHECKING:
    from redkey.client.connection import Emission

P = ParamSpec("P")
T = TypeVar("T")


class Sync:
    """Marks the sync client: calls return their results."""


class Async:
    """Marks the async client: calls return awaitables."""


Mode = TypeVar("Mode", Sync, Async)


class Sender(Protocol):
    """Sends requests: blocking, or when awaited."""

    def send(self, request: Request[Any]) -> Any: ...

    def take(self, steps: Steps[Any]) -> Any: ...


class ClientSender(Sender, Protocol):
    """A sender of lists and streams too."""

    def pages(self, request: Request[Any]) -> Any: ...

    def stream(self, flowing: Flowing[Any]) -> Any: ...

    def wait(self, task_ids: Sequence[str], timeout: float | None) -> Any: ...


class Resource(Generic[Mode]):
    """A family of operations that share one sender."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender


class _Declared(Generic[P, T]):
    """The base of all kinds of operations: the function that builds the request, and the sender."""

    def __init__(self, build: Callable[Concatenate[Any, P], Any]) -> None:
        self.build = build
        # The docstring that `help` shows.
        self.__doc__, self.__name__ = build.__doc__, build.__name__
        self.__wrapped__ = build

        @wraps(build)
        def method(owner: Resource[Any], *arguments: P.args, **named: P.kwargs) -> Any:
            return self._pass_on(owner._sender, build(owner, *arguments, **named))

        self._method = method

    def _bind(self, owner: Resource[Any] | None) -> Any:
        return self if owner is None else MethodType(self._method, owner)

    def _pass_on(self, sender: Any, built: Any) -> Any:
        raise NotImplementedError


class _Answered(_Declared[P, T]):
    """An operation with one reply: returned by the sync client, awaited by the async client."""

    @overload
    def __get__(self, owner: None, kind: Any) -> Self: ...
    @overload
    def __get__(self, owner: Resource[Sync], kind: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: Resource[Async], kind: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, owner: Resource[Any] | None, kind: Any) -> Any:
        return self._bind(owner)


class Operation(_Answered[P, T]):
    """An operation of one request."""

    build: Callable[Concatenate[Any, P], Request[T]]

    def __init__(self, build: Callable[Concatenate[Any, P], Request[T]]) -> None:
        super().__init__(build)

    def _pass_on(self, sender: Sender, built: Any) -> Any:
        return sender.send(built)


class Procedure(_Answered[P, T]):
    """An operation of several requests, each built from the answers before it."""

    def __init__(self, build: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        super().__init__(build)

    def _pass_on(self, sender: Sender, built: Any) -> Any:
        return sender.take(built)


class Gathering(_Answered[P, list[Task]]):
    """An operation that waits for tasks; the built value says for which, and for how long."""

    def __init__(self, build: Callable[Concatenate[Any, P], tuple[Sequence[str], float | None]]) -> None:
        super().__init__(build)

    def _pass_on(self, sender: ClientSender, built: Any) -> Any:
        return sender.wait(*built)


class Listing(_Declared[P, T]):
    """An operation that returns a list, fetched page by page."""

    def __init__(self, build: Callable[Concatenate[Any, P], Request[Page[T]]]) -> None:
        super().__init__(build)

    @overload
    def __get__(self, owner: None, kind: Any) -> Self: ...
    @overload
    def __get__(self, owner: Resource[Sync], kind: Any) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, owner: Resource[Async], kind: Any) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, owner: Resource[Any] | None, kind: Any) -> Any:
        return self._bind(owner)

    def _pass_on(self, sender: ClientSender, built: Any) -> Any:
        return sender.pages(built)


class Stream(_Declared[P, T]):
    """An operation that returns an open-ended stream: events, or the pieces of a body."""

    def __init__(self, build: Callable[Concatenate[Any, P], Flowing[T]]) -> None:
        super().__init__(build)

    @overload
    def __get__(self, owner: None, kind: Any) -> Self: ...
    @overload
    def __get__(self, owner: Resource[Sync], kind: Any) -> Callable[P, Emission[T]]: ...
    @overload
    def __get__(self, owner: Resource[Async], kind: Any) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, owner: Resource[Any] | None, kind: Any) -> Any:
        return self._bind(owner)

    def _pass_on(self, sender: ClientSender, built: Any) -> Any:
        return sender.stream(built)


class Pages(Generic[Item]):
    """A list whose pages are fetched while you iterate; `page()` fetches only the first page."""

    def __init__(self, send: Callable[[Request[Page[Item]]], Page[Item]], request: Request[Page[Item]]) -> None:
        self._send, self._request = send, request

    def page(self) -> Page[Item]:
        return self._send(self._request)

    def __iter__(self) -> Iterator[Item]:
        page = self._send(self._request)
        yield from page.items
        while page.next is not None:
            page = self._send(self._request.after(page.next))
            yield from page.items


class AsyncPages(Generic[Item]):
    """A list whose pages are fetched while you iterate; `page()` fetches only the first page."""

    def __init__(
        self, send: Callable[[Request[Page[Item]]], Coroutine[Any, Any, Page[Item]]], request: Request[Page[Item]]
    ) -> None:
        self._send, self._request = send, request

    async def page(self) -> Page[Item]:
        return await self._send(self._request)

    async def __aiter__(self) -> AsyncIterator[Item]:
        page = await self._send(self._request)
        for item in page.items:
            yield item
        while page.next is not None:
            page = await self._send(self._request.after(page.next))
            for item in page.items:
                yield item
