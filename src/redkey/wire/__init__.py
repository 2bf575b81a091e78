"""Wires: the message contracts, and the code that reads and writes such messages. Importing it imports no submodule.

In reading order:

    files                where the contract files are
    decode               bytes to JSON; refuses what two parsers could read differently
    load                 large JSON in pieces, so that parsing does not block other threads
    canonical            RFC 8785 bytes, which are hashed, stored and sent
    schema               compiled JSON Schemas, and their findings as sentences
    catalogue            the event types of Agent Wire 1.1, from their contract
    ids                  ids and stream ids
    names                names that people give to roles and queues
    times                times, to the nanosecond
    payload              the base classes of payload structs
    events               every event type as a struct, written from the schemas
    subjects             the ids under which the event index finds a wire
    envelope             a wire as a typed value: the envelope around a payload struct
    rules                rules of one wire that no schema can express
    validate             checks of wires by schema and rules
    grammar              closed schemas as regular expressions, to accept valid wires faster
    plain_pattern        string patterns that also work on JSON text

    legacy               Agent Wire 1.0
    lift                 translation of older and looser wires to 1.1
    lift_legacy          translation of each 1.0 message
    lifted               the result of lifting, and the ids it derives

    card                 the Agent Card 1.0
    lint                 rules of cards and briefs that no schema can express
    prose                the linter's rules for words and sentences
    a2a_contract         the compiled contract of that projection
    a2a                  the A2A 1.0 projection of a task's wires
    a2a_card             A2A Agent Cards of other software

    step                 agent-protocol envelopes
    step_paths           checks of the paths of a step's artifacts
    step_legacy          the list of changes when an older envelope is migrated
    step_legacy_input    migration of older inputs
    step_legacy_output   migration of older outputs
"""
