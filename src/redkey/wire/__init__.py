"""Wires: the contracts, and everything that reads or writes by them. Importing it imports none of its modules.

In reading order:

    files                where the contract files are
    decode               bytes to JSON, refusing what two parsers could read differently
    load                 large JSON in pieces, so that no parser keeps the interpreter for long
    canonical            RFC 8785 bytes: what is hashed, stored and sent
    schema               compiled JSON Schemas, and their findings in words
    catalogue            the event types of Agent Wire 1.1, from their contract
    ids                  ids and stream ids
    names                names that people give to roles and queues
    times                times, to the nanosecond
    payload              what the structs of payloads share
    events               every event type as a struct, written from the schemas
    subjects             the ids under which the event index finds a wire
    envelope             a wire as a typed value: the envelope around such a struct
    rules                rules of one wire that no schema can express
    validate             is this a valid wire?
    grammar              closed schemas as expressions over canonical bytes: a faster yes
    plain_pattern        which patterns of strings read the same in JSON text

    legacy               Agent Wire 1.0
    lift                 older and looser wires to 1.1
    lift_legacy          what each message of 1.0 means in 1.1
    lifted               the result of lifting, and the ids it derives

    card                 the Agent Card 1.0
    lint                 rules of cards and briefs that no schema can express
    prose                how the linter counts words and sentences
    a2a_contract         which A2A state follows a wire, from its contract
    a2a                  the A2A 1.0 projection of a task's wires
    a2a_card             A2A Agent Cards of other software

    step                 agent-protocol envelopes
    step_paths           where a step's artifacts may be
    step_legacy          older envelopes: what changed, and what was lost
    step_legacy_input    older inputs
    step_legacy_output   older outputs
"""
