-- One more reason why an event does not count, in the order of the edge's numbers: the creative, the ad
-- group and the campaign that its token names do not belong together.
ALTER TYPE ads.invalid_reason ADD VALUE IF NOT EXISTS 'mismatch';
