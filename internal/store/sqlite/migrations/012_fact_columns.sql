-- From this version on, the body of a fact or a version lacks what the columns id,
-- revision, hash, subject and predicate hold, and that of an entity its id. Earlier
-- programs, which read the body alone, must not open the file. Bodies that are there
-- stay as they are.
SELECT 1;
