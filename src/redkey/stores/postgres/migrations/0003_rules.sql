-- The rules that each server knows: newer ones are recorded only once all registered servers know them.
ALTER TABLE redkey.server ADD COLUMN rules integer NOT NULL DEFAULT 0;
