-- What each edit touched, so that only that travels to the nodes.

-- What a transaction changed of the document: a placement, campaign, ad group or experiment by its
-- id, the head of the document, or everything. Of an ad group the reader finds the campaign: it may
-- have moved to another when this is committed.
CREATE TABLE ads.catalog_edit_parts (
    edit xid8 REFERENCES ads.catalog_edits ON DELETE CASCADE,
    part text CHECK (part IN ('all', 'head', 'placement', 'campaign', 'ad_group', 'experiment')),
    id   text,
    PRIMARY KEY (edit, part, id)
);

-- The newest edit that was swept away: what changed up to it cannot be told.
ALTER TABLE ads.catalog_edits_swept ADD COLUMN newest xid8 NOT NULL DEFAULT '0';
