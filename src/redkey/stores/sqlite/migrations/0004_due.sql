-- When something is due next in a topic. For topics that are there already this is not known: look at once.

CREATE TABLE due (
  topic INTEGER PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT;

CREATE INDEX due_at ON due (at);

INSERT INTO due (topic, at) SELECT number, 1 FROM topic;
