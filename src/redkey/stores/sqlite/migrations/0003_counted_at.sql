-- Counters follow the ledger at a place of their own. Up to this format they were written with the records.

INSERT INTO counter (topic, name, amount)
SELECT topic, 'counted_at', last & ((1 << 40) - 1) FROM (
  SELECT number AS topic, (
    SELECT max(position) FROM record WHERE position BETWEEN topic.number << 40 AND (topic.number + 1 << 40) - 1
  ) AS last FROM topic
) WHERE last IS NOT NULL;
