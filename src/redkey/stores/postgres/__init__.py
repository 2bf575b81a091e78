"""The store on PostgreSQL: one ledger for several servers, each with connections of its own.

store        the port: units, readers, followers, doubts
unit         what a unit adds and reads; two round trips when it reads nothing more
begin        the first round trip: lock, head, what others wrote
announcing   what others commit: LISTEN and a poll
uploads      bodies in pieces, staged before a unit adopts them
"""

from redkey.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
