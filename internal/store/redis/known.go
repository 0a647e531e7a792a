package redis

// known is what an effect meets. A fact of revision 1 and a version meet no row of
// theirs: the state, whose revision is before the effect's, is of their slot.
type known struct {
	facts    []fields // without any where there is none
	sessions []fields
	ends     []int // how many stand at the end's ordinal
}

// asks are the commands that tell what an effect meets.
func (r rows) asks(p place) (commands [][]any) {
	for _, f := range r.facts {
		if f.Revision > 1 {
			commands = append(commands, append([]any{"HMGET", p.row(kindFact, f.ID)}, oldColumns...))
		}
	}
	for _, end := range r.ends {
		commands = append(commands, []any{"HGETALL", p.row(kindSession, end.Session)},
			[]any{"ZCOUNT", p.row(kindEnds), end.LastOrdinal, end.LastOrdinal})
	}
	return commands
}

// known parses the replies to asks.
func (r rows) known(replies []any) known {
	k := known{facts: make([]fields, len(r.facts))}
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
	return k
}
