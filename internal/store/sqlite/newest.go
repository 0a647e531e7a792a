package sqlite

import "context"

// Newest returns the sequences of the newest message of EPISODES and of the newest
// effect of AUDIT that the store has, 0 for none.
func (s *Store) Newest(ctx context.Context) (episode, effect uint64, err error) {
	_, err = s.reads.one(ctx, `SELECT (SELECT coalesce(max(seq), 0) FROM episodes), (SELECT coalesce(max(audit_seq), 0) FROM scopes)`, nil,
		&episode, &effect)
	return episode, effect, err
}
