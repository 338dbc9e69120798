-- Which person an account at an identity provider belongs to.
CREATE TABLE federated_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (user_id, issuer)
);

-- When the session ends however often it is refreshed. NULL: only when it is not used.
ALTER TABLE sessions ADD COLUMN ends_at BIGINT;
