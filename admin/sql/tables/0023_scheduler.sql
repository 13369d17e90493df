-- replaces migrations 1 to 19
--
-- What the scheduler knows: its turns, the books of campaigns, and pauses that it may take back.
-- Without foreign keys, as events are: the catalog can be emptied as a whole.

-- Who ran which task of the scheduler. The key makes a turn happen once.
CREATE TABLE ads.scheduler_runs (
    task        text NOT NULL,
    due_at      timestamptz NOT NULL,
    instance    text NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    changed     bigint,
    error       text,
    -- A turn that failed has an error, is not finished, and is tried again at retry_at.
    attempts    int NOT NULL DEFAULT 1,
    retry_at    timestamptz,
    PRIMARY KEY (task, due_at),
    CHECK (finished_at >= started_at)
);

-- The day that a campaign's books are at. Its figures are in daily_spend.
CREATE TABLE ads.campaign_books (
    campaign_id        ads.id PRIMARY KEY,
    day                date NOT NULL,           -- in the campaign's time zone
    opened_at          timestamptz NOT NULL,
    target_micro       bigint,                  -- what this day may spend; null: no budget
    spent_before_micro bigint NOT NULL          -- before this day
);

-- Who was paused because its budget was spent, and by nobody else.
CREATE TABLE ads.budget_pauses (
    campaign_id ads.id PRIMARY KEY,
    paused_at   timestamptz NOT NULL
);

-- The least p-value that a variant had against the first one, at any look.
CREATE TABLE ads.experiment_looks (
    experiment_id ads.id NOT NULL,
    creative_id   ads.id NOT NULL,
    p             double precision NOT NULL CHECK (p BETWEEN 0 AND 1),
    looked_at     timestamptz NOT NULL,
    PRIMARY KEY (experiment_id, creative_id)
);

-- Who was paused with the advertiser, and by nobody else: they are resumed with it. One
-- that was paused over its budget then waits for that again.
CREATE TABLE ads.advertiser_pauses (
    campaign_id ads.id PRIMARY KEY,
    over_budget boolean NOT NULL DEFAULT false,
    paused_at   timestamptz NOT NULL DEFAULT now()
);
