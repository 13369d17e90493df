-- "Books" had several meanings. What replaces these functions is in the function files.
ALTER TABLE ads.campaign_books RENAME TO campaign_days;
ALTER INDEX ads.campaign_books_pkey RENAME TO campaign_days_pkey;
DROP TRIGGER IF EXISTS forget_books ON ads.campaigns;
DROP FUNCTION IF EXISTS ads.books(date), ads.stale_books(), ads.turn_open(text, timestamptz), ads.due_turn(text),
    ads.claim_turn(text, text), ads.finish_turn(text, timestamptz, bigint), ads.fail_turn(text, timestamptz, text, text),
    ads.do_turn(text, timestamptz, int),
    ads.settle_pixels(text, int8[], int4[], text[], float8[], text[]);
