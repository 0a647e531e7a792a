package redis

import "context"

// known is what an effect meets.
type known struct {
	facts    []fields // without any where there is none
	versions []bool
	sessions []fields
	ends     []int // how many stand at the end's ordinal
}

// asks are the commands that tell what an effect meets. Most rows of most effects
// are new, which one command says of all of them.
func (r rows) asks(p place) (commands [][]any) {
	newcomers := []any{"EXISTS"}
	for _, f := range r.facts {
		if key := p.row(kindFact, f.ID); f.Revision == 1 {
			newcomers = append(newcomers, key)
		} else {
			commands = append(commands, append([]any{"HMGET", key}, oldColumns...))
		}
	}
	for _, v := range r.versions {
		newcomers = append(newcomers, p.base+v.member)
	}
	for _, end := range r.ends {
		commands = append(commands, []any{"HGETALL", p.row(kindSession, end.Session)},
			[]any{"ZCOUNT", p.row(kindEnds), end.LastOrdinal, end.LastOrdinal})
	}
	if len(newcomers) > 1 {
		commands = append(commands, newcomers)
	}
	return commands
}

// readKnown parses the replies to the reads of the current rows.
func (s *Store) readKnown(ctx context.Context, p place, r rows, replies []any) (known, error) {
	if r.first {
		return known{
			facts: make([]fields, len(r.facts)), versions: make([]bool, len(r.versions)),
			sessions: make([]fields, len(r.ends)), ends: make([]int, len(r.ends)),
		}, nil
	}
	k := known{facts: make([]fields, len(r.facts)), versions: make([]bool, len(r.versions))}
	next := func() (reply any) {
		reply, replies = replies[0], replies[1:]
		return reply
	}
	for i, f := range r.facts {
		if f.Revision > 1 {
			k.facts[i] = pick(oldFields, next())
		}
	}
	for range r.ends {
		k.sessions = append(k.sessions, hashOf(next()))
		count, _ := next().(int64)
		k.ends = append(k.ends, int(count))
	}
	if len(replies) == 0 || next() == int64(0) {
		return k, nil
	}
	return k, s.readOld(ctx, p, r, k)
}

// readOld reads which of the rows that might have been new are not.
func (s *Store) readOld(ctx context.Context, p place, r rows, k known) error {
	var commands [][]any
	for _, f := range r.facts {
		commands = append(commands, append([]any{"HMGET", p.row(kindFact, f.ID)}, oldColumns...))
	}
	for _, v := range r.versions {
		commands = append(commands, []any{"EXISTS", p.base + v.member})
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return err
	}
	for i := range r.facts {
		k.facts[i] = pick(oldFields, replies[i])
	}
	for i := range r.versions {
		k.versions[i] = replies[len(r.facts)+i] == int64(1)
	}
	return nil
}
