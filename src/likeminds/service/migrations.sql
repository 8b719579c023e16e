-- Each step migrates a database by one version, in SQL that SQLite and PostgreSQL read alike.
-- A released step never changes. Lines of dashes separate steps.

CREATE TABLE people (
    person TEXT PRIMARY KEY,
    token_hash TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL
);
CREATE TABLE labels (
    person TEXT NOT NULL,
    attribute TEXT NOT NULL,
    item TEXT NOT NULL,
    label INTEGER,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (person, attribute, item)
);
CREATE TABLE forgotten (
    person_hash TEXT PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL
);
CREATE TABLE api_keys (
    key_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE,
    created DOUBLE PRECISION NOT NULL
);
CREATE TABLE answers (
    caller TEXT NOT NULL,
    write_key TEXT NOT NULL,
    person TEXT NOT NULL,
    digest TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (caller, write_key)
);

--------

CREATE INDEX labels_by_time ON labels (at);
CREATE INDEX answers_by_time ON answers (at);
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);

--------

ALTER TABLE labels ADD COLUMN answer DOUBLE PRECISION;
UPDATE labels SET answer = label;
ALTER TABLE labels DROP COLUMN label;
ALTER TABLE labels RENAME COLUMN answer TO label;

--------

CREATE INDEX people_by_token ON people (token_hash);

--------

ALTER TABLE people RENAME TO users;
ALTER TABLE users RENAME COLUMN person TO user_id;
ALTER TABLE labels RENAME COLUMN person TO user_id;
ALTER TABLE answers RENAME COLUMN person TO user_id;
ALTER TABLE forgotten RENAME COLUMN person_hash TO user_hash;
