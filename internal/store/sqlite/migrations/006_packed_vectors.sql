-- From here on a vector may stand in its packed form (see vector.go), which
-- earlier programs would misread.
INSERT OR IGNORE INTO meta (name, value) VALUES ('vectors', 'packed');
