-- Requests are found by their idempotency key: records of the first format get the subject that newer ones have.

UPDATE record
SET subjects = json_insert(
  subjects, '$[#]', 'idem:' || substr(json_extract(CAST(wire AS TEXT), '$.payload.idem'), 1, 16)
)
WHERE instr(subjects, '"keyed"') AND json_valid(subjects) AND json_valid(CAST(wire AS TEXT))
  AND json_type(CAST(wire AS TEXT), '$.payload.idem') = 'text';

INSERT OR IGNORE INTO event (subject, position)
SELECT subject.value, event.position FROM event
JOIN record ON record.position = event.position
JOIN json_each(CASE WHEN json_valid(subjects) THEN subjects ELSE '[]' END) AS subject
WHERE event.subject = 'keyed' AND subject.value GLOB 'idem:*'
ORDER BY 1, 2;
