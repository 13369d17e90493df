-- Reports of a day over all campaigns: the primary key begins with the campaign. Rows come in the order of their hours,
-- so that ranges of pages are enough: the index has a few pages, is built in one pass, and an update of a row stays
-- within its page.
CREATE INDEX event_hours_hour ON ads.event_hours USING brin (hour) WITH (pages_per_range = 16, autosummarize = on);
