-- Markup of third parties, for frames on a host of their own.
ALTER TYPE ads.creative_type ADD VALUE IF NOT EXISTS 'tag';
