-- What is watched, what was found, and who was told. Evidence and labels are JSON as text.

-- Who does what only one server may do at a time.
CREATE TABLE leases (
    name TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    until BIGINT NOT NULL
);

CREATE TABLE alert_rules (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    -- Counts the saves; an edit names the revision that it changes.
    revision BIGINT NOT NULL,
    document TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    deleted_at BIGINT
);
CREATE INDEX alert_rules_by_project ON alert_rules (project);

-- How the latest evaluation of a rule went.
CREATE TABLE alert_evaluations (
    rule TEXT COLLATE "C" PRIMARY KEY REFERENCES alert_rules (id),
    evaluated_at BIGINT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('ok', 'pending', 'firing', 'no_data', 'failed')),
    -- Why there is no answer; NULL when there is one.
    error TEXT
);

-- A row for each group of a rule that is not ok.
CREATE TABLE alert_states (
    rule TEXT COLLATE "C" NOT NULL REFERENCES alert_rules (id),
    -- The values of the rule's dimensions, as JSON; `{}` when it has none.
    group_key TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'firing', 'shifted')),
    since BIGINT NOT NULL,
    -- When there was an answer last, whichever it was.
    seen_at BIGINT NOT NULL,
    -- What it is compared with, as long as the state lasts: a version.
    base TEXT,
    incident TEXT COLLATE "C",
    PRIMARY KEY (rule, group_key)
);

CREATE TABLE incidents (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    rule TEXT COLLATE "C" NOT NULL REFERENCES alert_rules (id),
    group_key TEXT COLLATE "C" NOT NULL,
    -- A shift of the mix of devices is only taken down: it is resolved at once, and nobody is told.
    kind TEXT NOT NULL CHECK (kind IN ('alert', 'mix_shift')),
    -- Copied from the rule when it fired: an edit does not change history.
    title TEXT NOT NULL,
    severity TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    owner TEXT NOT NULL,
    labels TEXT NOT NULL,
    -- One line with the numbers, for people.
    summary TEXT NOT NULL,
    -- Path and query of the screen that shows the same numbers.
    link TEXT NOT NULL,
    evidence TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('firing', 'resolved')),
    started_at BIGINT NOT NULL,
    resolved_at BIGINT,
    resolved_because TEXT,
    acknowledged_at BIGINT,
    acknowledged_by TEXT,
    -- Which state the channels were told last; NULL: none yet.
    told TEXT CHECK (told IN ('firing', 'resolved')),
    -- What it did to the remote configuration; NULL: nothing was tried.
    action_state TEXT CHECK (action_state IN ('placed', 'refused', 'ended')),
    -- The same in full, JSON.
    action TEXT
);
CREATE INDEX incidents_by_project ON incidents (project, started_at);
-- What the channels are still to be told.
CREATE INDEX incidents_untold ON incidents (project, rule) WHERE told IS NULL OR told <> state;
-- What is still to be taken back.
CREATE INDEX incidents_placed ON incidents (project) WHERE action_state = 'placed';
CREATE UNIQUE INDEX incidents_firing ON incidents (rule, group_key) WHERE state = 'firing';

CREATE TABLE mutes (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    -- NULL: all rules of the project.
    rule TEXT COLLATE "C" REFERENCES alert_rules (id),
    -- NULL: all groups of the rule.
    group_key TEXT COLLATE "C",
    starts_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX mutes_by_project ON mutes (project, ends_at);

-- Where people are told.
CREATE TABLE channels (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('webhook', 'alertmanager', 'slack', 'email')),
    -- What may be shown, JSON.
    settings TEXT NOT NULL,
    -- URLs with tokens, passwords and signing keys, sealed.
    secret BYTEA,
    least_severity TEXT NOT NULL CHECK (least_severity IN ('info', 'warning', 'critical')),
    -- What is sent there: incidents, the daily digest, or both.
    incidents BOOLEAN NOT NULL,
    digest BOOLEAN NOT NULL,
    enabled BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX channels_by_project ON channels (project);

-- What is to be sent, written before it is: the delivery log.
CREATE TABLE notifications (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES projects (id),
    channel TEXT COLLATE "C" NOT NULL REFERENCES channels (id),
    -- The same message has the same key, wherever and whenever it is written.
    key TEXT COLLATE "C" NOT NULL UNIQUE,
    -- Messages of a thread reach a channel in the order in which they were written: a rule's id, or `digest`.
    thread TEXT COLLATE "C" NOT NULL,
    subject TEXT NOT NULL,
    -- What it is about, JSON; how it looks at the channel is made from it when it is sent.
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sending', 'delivered', 'failed')),
    attempts BIGINT NOT NULL,
    -- While it is being sent: when the claim on it ends, should the server that sends it have died.
    next_attempt_at BIGINT NOT NULL,
    last_error TEXT,
    -- Later than that of the message before in the thread, whatever clocks say.
    created_at BIGINT NOT NULL,
    delivered_at BIGINT
);
CREATE INDEX notifications_due ON notifications (state, next_attempt_at);
CREATE INDEX notifications_by_channel ON notifications (channel, thread, created_at);
CREATE INDEX notifications_by_project ON notifications (project, created_at);

-- Who was told that an incident fires: they are told its end.
CREATE TABLE incident_channels (
    incident TEXT COLLATE "C" NOT NULL REFERENCES incidents (id),
    channel TEXT COLLATE "C" NOT NULL REFERENCES channels (id),
    PRIMARY KEY (incident, channel)
);
CREATE INDEX incident_channels_by_channel ON incident_channels (channel);
