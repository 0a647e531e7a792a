package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Extraction compares what an extractor finds in each utterance with the labels.
// Candidates that the write policy would hold or drop do not count.
func Extraction(ctx context.Context, set []Utterance, x extract.Extractor) (ExtractionReport, error) {
	r := ExtractionReport{Categories: map[string]Score{}}
	for _, u := range set {
		found, err := stated(ctx, u, x)
		if err != nil {
			return r, fmt.Errorf("extract from utterance %s: %w", u.ID, err)
		}
		r.Utterances++
		out := Outcome{ID: u.ID, Text: u.Text, Facts: make([]FoundFact, 0, len(found))}
		for _, c := range found {
			out.Facts = append(out.Facts, foundFact(c))
		}
		if u.Facts != nil {
			r.facts(u, found, &out)
		}
		if u.Bearing != nil {
			r.Bearing.count(*u.Bearing, len(found) > 0)
		}
		if u.Entities != nil {
			r.entities(*u.Entities, x, u.Text, &out)
		}
		r.Outcomes = append(r.Outcomes, out)
	}
	return r, nil
}

// mentioner is an extractor that finds names.
type mentioner interface {
	Mentions(content string) []events.Mention
}

// said is when the utterance was made.
func (u Utterance) said() time.Time {
	if u.Time.IsZero() {
		return said
	}
	return u.Time
}

// stated are the candidates of an utterance that are committed at once.
func stated(ctx context.Context, u Utterance, x extract.Extractor) ([]events.Candidate, error) {
	at := u.said()
	whose := scope.Scope{Project: scope.DefaultProject, User: "u", Session: "s"}
	in := extract.Context{Scope: whose.Fact(), Rule: memory.RuleTurn}
	if u.Prev != "" {
		in.Before = []memory.Episode{{ID: "0", Scope: whose, Role: events.RoleAssistant, Content: u.Prev, Timestamp: at.Add(-time.Minute)}}
	}
	found, err := x.Extract(ctx, []memory.Episode{{ID: "1", Scope: whose, Role: events.RoleUser, Content: u.Text, Timestamp: at, Ordinal: 1}}, in)
	return slices.DeleteFunc(found, func(c events.Candidate) bool { return c.Transient || c.Hedged || !c.Explicit || c.Predicate == "" }), err
}

// facts matches labels with candidates, each once, the closest first.
func (r *ExtractionReport) facts(u Utterance, found []events.Candidate, out *Outcome) {
	if len(*u.Facts) == 0 {
		r.Silent++
		if len(found) > 0 {
			r.Fired++
		}
	}
	used := make(map[int]bool)
	for _, label := range *u.Facts {
		of := strings.Split(label.Category, "|")
		category := cmp.Or(of[0], "correction")
		best, at := 0.0, -1
		for i, c := range found {
			if fits := overlap(c.Object, label.Object); !used[i] && fits > best && label.covers(c, of) {
				best, at = fits, i
			}
		}
		s := Score{Stated: 1}
		if best >= 0.5 {
			used[at] = true
			s.Found, s.Right = 1, 1
		} else if i := label.ended(found, of); i >= 0 {
			if used[i] {
				s.Stated = 0 // it was counted as a statement
			} else {
				used[i], s.Found, s.Right = true, 1, 1
				at = i
			}
		} else {
			out.Missed = append(out.Missed, label)
		}
		if !r.date(u, label, found, at) {
			out.Misdated = append(out.Misdated, label)
		}
		r.add(category, s)
	}
	for i, c := range found {
		if !used[i] && !implied(c) {
			out.Surplus = append(out.Surplus, foundFact(c))
			r.add(categoryOf(c.Predicate), Score{Found: 1})
		}
	}
}

// implied reports whether a candidate says only that a relative exists, which is
// no mistake where a label leaves it out.
func implied(c events.Candidate) bool {
	return strings.HasPrefix(c.RuleID, "relation.") && !strings.Contains(c.Object, "named") && c.Entities == nil
}

// date counts a label with a date, and reports whether the candidate at an index,
// or -1, has it.
func (r *ExtractionReport) date(u Utterance, label Label, found []events.Candidate, at int) bool {
	if label.Date == "" {
		return true
	}
	r.Dates++
	if at < 0 {
		return false
	}
	when := found[at].EventTime
	if from := found[at].ValidFrom; from != nil && !from.Equal(u.said()) { // a plan holds from its statement on
		when = *from
	}
	if when.Format(time.DateOnly) != label.Date {
		return false
	}
	r.DatesRight++
	return true
}

// covers reports whether a candidate can be the labelled fact, object apart.
func (l Label) covers(c events.Candidate, categories []string) bool {
	if !slices.ContainsFunc(categories, known) {
		return categories[0] != "" || l.about(c)
	}
	return l.about(c) && slices.Contains(categories, categoryOf(c.Predicate))
}

// ended is the index of a candidate that ends the labelled fact, as a
// statement of its successor does; -1 for none.
func (l Label) ended(found []events.Candidate, categories []string) int {
	if !l.Negated {
		return -1
	}
	return slices.IndexFunc(found, func(c events.Candidate) bool {
		return slices.ContainsFunc(c.Retracts, func(t events.Triple) bool {
			t.Object = cmp.Or(t.Object, l.Object) // any object
			return l.about(events.Candidate{Subject: t.Subject, Negated: true}) &&
				slices.Contains(categories, categoryOf(t.Predicate)) && overlap(t.Object, l.Object) >= 0.5
		})
	})
}

func (l Label) about(c events.Candidate) bool {
	subject := strings.ToLower(c.Subject)
	for _, own := range []string{"user's ", "пользователь: "} {
		subject = strings.TrimPrefix(subject, own)
	}
	return subject == strings.ToLower(l.Subject) && c.Negated == l.Negated
}

func foundFact(c events.Candidate) FoundFact {
	f := FoundFact{
		Subject: c.Subject, Predicate: c.Predicate, Object: c.Object, Category: categoryOf(c.Predicate),
		Negated: c.Negated || c.Predicate == "dislikes", Text: c.Text, Rule: c.RuleID, EventTime: c.EventTime, ValidFrom: c.ValidFrom,
	}
	return f
}

// entities compares names, and names with their types.
func (r *ExtractionReport) entities(labels []NameLabel, x extract.Extractor, text string, out *Outcome) {
	var found []events.Mention
	if m, ok := x.(mentioner); ok {
		found = m.Mentions(text)
	}
	names, typed := Score{Found: len(found), Stated: len(labels)}, Score{Found: len(found), Stated: len(labels)}
	for _, e := range found {
		out.Entities = append(out.Entities, NameLabel{Name: e.Name, Type: string(e.Type)})
		for _, l := range labels {
			if strings.EqualFold(l.Name, e.Name) {
				names.Right++
				if l.Type == string(e.Type) {
					typed.Right++
				}
				break
			}
		}
	}
	r.Names.sum(names)
	r.Typed.sum(typed)
}
