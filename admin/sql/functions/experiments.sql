-- Experiments: their figures, start and end.

-- The variants in the order of their creatives; the others are compared with the first. A trial is
-- the first impression of a session.
CREATE OR REPLACE FUNCTION ads.experiment_arms(experiment bigint) RETURNS TABLE (
    creative_id bigint, name text, share double precision, trials bigint, successes bigint, previous_p double precision)
STABLE LANGUAGE sql SET search_path = pg_catalog, ads, pg_temp AS $$
    SELECT v.creative_id, k.name, v.share, coalesce(t.trials, 0), coalesce(t.successes, 0), coalesce(l.p, 1)
    FROM ads.variants v JOIN ads.creatives k ON k.id = v.creative_id
    LEFT JOIN (SELECT t.creative_id, count(*) AS trials, count(t.first_success) AS successes
               FROM ads.experiment_trials t WHERE t.experiment_id = experiment AND t.first_impression IS NOT NULL
               GROUP BY t.creative_id) t ON t.creative_id = v.creative_id
    LEFT JOIN ads.experiment_looks l ON l.experiment_id = v.experiment_id AND l.creative_id = v.creative_id
    WHERE v.experiment_id = experiment
    ORDER BY v.creative_id
$$;

CREATE OR REPLACE FUNCTION ads.note_look(experiment bigint, creative bigint, seen double precision) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, ads, pg_temp AS $$
    INSERT INTO ads.experiment_looks AS l VALUES (experiment, creative, seen, ads.now())
    ON CONFLICT (experiment_id, creative_id)
    DO UPDATE SET p = least(l.p, excluded.p), looked_at = excluded.looked_at
$$;

-- The experiment, locked until the end of the transaction. Fails if its status is a different one;
-- `rule` explains why that matters.
CREATE OR REPLACE FUNCTION ads.lock_experiment(experiment bigint, wanted ads.experiment_status, rule text)
RETURNS ads.experiments LANGUAGE plpgsql SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    e ads.experiments;
BEGIN
    SELECT * INTO e FROM ads.experiments WHERE id = experiment FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no experiment %', experiment USING ERRCODE = 'no_data_found';
    END IF;
    IF e.status <> wanted THEN
        RAISE EXCEPTION 'experiment % is %, %', experiment, e.status, rule USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN e;
END $$;

CREATE OR REPLACE FUNCTION ads.start_experiment(experiment bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    e ads.experiments := ads.lock_experiment(experiment, 'draft', 'and only a draft can be started');
    other bigint;
BEGIN
    SELECT id INTO other FROM ads.experiments WHERE ad_group_id = e.ad_group_id AND status = 'running';
    IF FOUND THEN
        RAISE EXCEPTION 'experiment % is already running in ad group %: stop it first', other, e.ad_group_id
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM ads.experiment_looks WHERE experiment_id = experiment;
    UPDATE ads.experiments SET status = 'running' WHERE id = experiment;
END $$;

-- Ends the experiment and writes the reason to the log. A winner receives the traffic of all
-- variants: the sum of their weights, and the others get 0. Creatives that were not variants keep
-- their weights.
CREATE OR REPLACE FUNCTION ads.end_experiment(experiment bigint, chosen bigint, why jsonb) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, ads, pg_temp AS $$
DECLARE
    total bigint;
BEGIN
    PERFORM ads.lock_experiment(experiment, 'running', 'not running');
    IF chosen IS NOT NULL AND NOT EXISTS (SELECT FROM ads.variants WHERE experiment_id = experiment AND creative_id = chosen)
    THEN
        RAISE EXCEPTION 'creative % is not a variant of experiment %', chosen, experiment
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE ads.experiments SET status = 'completed', winner = chosen WHERE id = experiment;
    -- If the winner were not active, nothing could be served.
    IF EXISTS (SELECT FROM ads.creatives WHERE id = chosen AND status = 'active') THEN
        SELECT least(1000000, greatest(1, sum(k.weight))) INTO total
        FROM ads.variants v JOIN ads.creatives k ON k.id = v.creative_id WHERE v.experiment_id = experiment;
        UPDATE ads.creatives k SET weight = CASE WHEN k.id = chosen THEN total ELSE 0 END
        FROM ads.variants v WHERE v.experiment_id = experiment AND k.id = v.creative_id;
    END IF;
    INSERT INTO ads.audit_log (actor, action, table_name, row_id, after)
    VALUES (coalesce(nullif(current_setting('ads.actor', true), ''), session_user), 'verdict', 'experiments',
            experiment::text, why);
END $$;
