package chaos

import (
	"context"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// stream checks that EPISODES still holds each message, repetitions included, at
// its acknowledged sequence.
func (j *judge) stream(ctx context.Context) error {
	held := map[uint64]string{}
	_, err := j.evidence.Episodes.Read(ctx, 0, func(batch []*pipeline.Entry) error {
		for _, e := range batch {
			held[e.Meta.Sequence] = e.Meta.ID
			if e.Err != nil {
				return e.Err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	missed := map[uint64]bool{} // a repetition that the broker knew stands where the first does
	for n, voice := range j.workload.Voices {
		for k, sequence := range j.record.Acks[n] {
			id := j.workload.Users[voice.User].Episodes[voice.Steps[k].Episode].ID
			if held[sequence] != id && !missed[sequence] {
				missed[sequence] = true
				j.gone[id] = true
				j.count(&j.verdict.Lost, "stream", id, "EPISODES does not hold it at %d", sequence)
			}
		}
	}
	return nil
}

// users checks what is stored and known of each user.
func (j *judge) users(ctx context.Context) error {
	voices := map[int][]int{}
	for n, v := range j.workload.Voices {
		voices[v.User] = append(voices[v.User], n)
	}
	accounts, err := j.evidence.Store.Accounts(ctx, scope.Selector{Project: scope.DefaultProject}, j.record.Rules)
	if err != nil {
		return err
	}
	for _, a := range accounts {
		j.waiting[a.Scope] = max(j.waiting[a.Scope], a.Pending)
	}
	for n, user := range j.workload.Users {
		if err := j.episodes(ctx, user, voices[n]); err != nil {
			return err
		}
		if waiting := j.waiting[user.scope()]; waiting > 0 {
			j.verdict.find("facts", user.Name, "not judged: %d episodes wait", waiting)
			continue
		}
		if err := j.facts(ctx, user); err != nil {
			return err
		}
	}
	return nil
}

// foreign checks that nothing is stored under a scope without a publisher. A copy
// that strayed there is missing nowhere else.
func (j *judge) foreign(ctx context.Context) error {
	own := map[scope.Scope]bool{}
	for _, user := range j.workload.Users {
		own[user.scope()] = true
	}
	projects, err := j.evidence.Store.Projects(ctx)
	if err != nil {
		return err
	}
	for _, project := range projects {
		err := j.evidence.Store.Scopes(ctx, scope.Selector{Project: project}, func(fact scope.Scope) bool {
			if !own[fact] {
				j.count(&j.verdict.Wrong, "scopes", fact.String(), "holds something, and nobody spoke in it")
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// page is how many rows are read at once.
const page = 1000

// episodes checks that each acknowledged message of a user is stored once and
// unchanged, in the order of its publisher.
func (j *judge) episodes(ctx context.Context, user User, voices []int) error {
	state, err := j.evidence.Store.State(ctx, user.scope())
	if err != nil {
		return err
	}
	stored := map[string][]memory.Episode{}
	for from := uint64(0); from < state.LastOrdinal; from += page {
		list, err := j.evidence.Store.EpisodeRange(ctx, user.scope(), events.Range{From: from, To: from + page})
		if err != nil {
			return err
		}
		for _, e := range list {
			stored[e.ID] = append(stored[e.ID], e)
		}
		j.verdict.Checked.Episodes += len(list)
	}
	j.stored(user, stored)
	missed := map[string]bool{} // both devices say hello
	for _, voice := range voices {
		last := memory.Episode{}
		for _, n := range j.acknowledged(voice) {
			id := user.Episodes[n].ID
			if len(stored[id]) == 0 {
				if !missed[id] {
					missed[id] = true
					if j.gone[id] {
						j.count(&j.verdict.Lost, "episodes", id, "was acknowledged and is not stored")
						continue
					}
					j.count(&j.verdict.Pending, "episodes", id, "is in EPISODES and not stored yet")
					j.waiting[user.scope()]++
				}
				continue
			}
			e := stored[id][0]
			if e.Ordinal <= last.Ordinal {
				j.count(&j.verdict.OutOfOrder, "episodes", id, "has ordinal %d, after %s with %d", e.Ordinal, last.ID, last.Ordinal)
			}
			last = e
		}
	}
	return nil
}

// stored checks each stored episode for itself.
func (j *judge) stored(user User, stored map[string][]memory.Episode) {
	published := map[string]Episode{}
	for _, e := range user.Episodes {
		published[e.ID] = e
	}
	for id, list := range stored {
		for _, again := range list[1:] {
			j.count(&j.verdict.Duplicated, "episodes", id, "is stored again as ordinal %d", again.Ordinal)
		}
		want, ok := published[id]
		switch e := list[0]; {
		case !ok:
			j.count(&j.verdict.Wrong, "episodes", id, "no publisher sent it for %s", user.Name)
		case e.Content != want.Content || e.Role != want.Role || e.Scope.Session != want.Session || !e.Timestamp.Equal(want.At):
			j.count(&j.verdict.Wrong, "episodes", id, "is %q of %s in session %s at %v", e.Content, e.Role, e.Scope.Session, e.Timestamp)
		}
	}
}

// facts checks what is known of a user against the known answers.
func (j *judge) facts(ctx context.Context, user User) error {
	known, err := j.held(ctx, user.scope())
	if err != nil {
		return err
	}
	j.verdict.Checked.Facts += len(known)
	for _, want := range user.Known {
		same := func(f store.Fact) bool {
			return f.Predicate == want.Predicate && (single(want.Predicate) || f.Object == want.Object)
		}
		var found []store.Fact
		for _, f := range known {
			if same(f) {
				found = append(found, f)
			}
		}
		known = slices.DeleteFunc(known, same)
		j.fact(user, want, found)
	}
	for _, f := range known {
		j.count(&j.verdict.Wrong, "facts", user.Name, "%q must not be known; it rests on %v", f.Text, f.SourceEpisodeIDs)
	}
	return nil
}

func (j *judge) fact(user User, want Known, found []store.Fact) {
	v := &j.verdict
	if len(found) == 0 {
		j.count(&v.Lost, "facts", user.Name, "%s %s is not known; %s states it", want.Predicate, want.Object, want.Last)
		return
	}
	for _, f := range found[1:] {
		j.count(&v.Duplicated, "facts", user.Name, "%q is known again as %s", f.Text, f.ID)
	}
	f := found[0]
	if f.Object != want.Object {
		j.count(&v.OutOfOrder, "facts", user.Name, "%q is known last, but %s states %s", f.Text, want.Last, want.Object)
		return
	}
	if !rests(f.SourceEpisodeIDs, want) {
		j.count(&v.Wrong, "facts", user.Name, "%q rests on %v, not on %v", f.Text, f.SourceEpisodeIDs, want.Sources)
	}
}

// rests reports whether a fact has the sources that it must have.
func rests(sources []string, want Known) bool {
	for _, id := range sources {
		if !slices.Contains(want.Sources, id) {
			return false
		}
	}
	if single(want.Predicate) {
		return slices.Contains(sources, want.Last)
	}
	for _, id := range want.Sources {
		if !slices.Contains(sources, id) {
			return false
		}
	}
	return true
}

// held lists the facts of a scope that hold: neither closed nor archived.
func (j *judge) held(ctx context.Context, fact scope.Scope) ([]store.Fact, error) {
	var out []store.Fact
	q := store.FactQuery{Limit: page}
	for {
		list, err := j.evidence.Store.Facts(ctx, scope.Exactly(fact), q)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			if f.ValidUntil == nil && f.ArchivedAt == nil {
				out = append(out, f)
			}
		}
		if len(list) < page {
			return out, nil
		}
		last := list[len(list)-1]
		q.Cursor = &store.FactCursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}
