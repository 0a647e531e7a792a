-- What models charged for an effect: a JSON array of events.Spent; NULL for nothing.
ALTER TABLE tallies ADD COLUMN spent TEXT;
