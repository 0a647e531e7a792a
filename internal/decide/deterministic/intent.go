package deterministic

import (
	"reflect"
	"slices"
	"strings"

	"palimpsest/internal/decide"
	"palimpsest/internal/lex"
	"palimpsest/pkg/events"
)

// intent is step 1: what the episode's metadata asks for is done.
func (d *decision) intent() (bool, error) {
	switch d.c.Intent {
	case "":
		return false, nil
	case "noop":
		return true, d.noop(events.ReasonRequested, "")
	case "update", "delete":
	default:
		return false, d.invalid("metadata.intent", "is none of noop, update, delete")
	}
	if len(d.c.Replaces) == 0 {
		return false, d.invalid("metadata.intent", d.c.Intent+" needs metadata.replaces")
	}
	if d.c.Intent == "delete" {
		return true, d.deleteNamed()
	}
	return d.updateNamed()
}

func (d *decision) invalid(field, reason string) error {
	return &decide.InvalidCandidateError{CandidateID: d.c.ID, Field: field, Reason: reason}
}

// deleteNamed closes those named that are open, but none that was rewritten or
// brought back since the words were said. All closed is no change.
func (d *decision) deleteNamed() error {
	named, err := d.named()
	if err != nil {
		return err
	}
	var open []string
	for _, f := range named {
		restored := f.Revision > 1 && d.view.newer(f, d.c)
		if !restored && (f.ValidUntil == nil || f.ValidUntil.After(decide.Since(d.c))) {
			open = append(open, f.ID)
		}
	}
	if len(open) == 0 {
		return d.noop(events.ReasonRequested, "")
	}
	return d.end(events.ReasonRequested, open...)
}

// updateNamed rewrites the first of those named and closes the others.
func (d *decision) updateNamed() (bool, error) {
	named, err := d.named()
	if err != nil {
		return false, err
	}
	done, err := d.doneBefore()
	if err != nil {
		return false, err
	}
	if done {
		return true, d.noop(events.ReasonDuplicate, "")
	}
	survivor := named[0]
	if d.restsOn(survivor) {
		return false, nil // the episode said more than the rewrite: the rest is news
	}
	if !d.view.current(survivor, d.c.EventTime) {
		return false, &decide.FactConflictError{CandidateID: d.c.ID, Found: named}
	}
	version := d.completed(survivor)
	if version.Hash == survivor.Hash && reflect.DeepEqual(merged(survivor.Metadata, version.Metadata), merged(survivor.Metadata, nil)) {
		return true, d.noop(events.ReasonDuplicate, survivor.ID)
	}
	version, ids, err := d.exclusive(version, named)
	if err != nil {
		return false, err
	}
	return true, d.update(events.ReasonRequested, version, ids...)
}

// exclusive lists the facts that go with a rewritten one: those named that
// hold, and where one value holds at a time, the others of its (subject,
// predicate). It returns the version as it begins then.
func (d *decision) exclusive(version events.Fact, named []events.Fact) (events.Fact, []string, error) {
	keyed, err := d.view.byKey(version.Subject, version.Predicate)
	if err != nil {
		return version, nil, err
	}
	single := version.Cardinality == events.One
	replaced := named[:1:1]
	for _, f := range append(named[1:], keyed...) {
		rival := single && sameKey(f, events.Candidate{Subject: version.Subject, Predicate: version.Predicate}) && f.Kind == version.Kind
		if d.view.current(f, d.c.EventTime) && (rival || slices.Contains(d.c.Replaces, f.ID)) {
			replaced = append(replaced, f)
		}
	}
	if single {
		version = d.placed(version, keyed, replaced)
	}
	return version, idsOf(named[0], replaced), nil
}

// doneBefore reports whether these words made a version of the fact already.
func (d *decision) doneBefore() (bool, error) {
	same, err := d.view.byHash(d.fact.Hash)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(same, func(f events.Fact) bool {
		return f.ID == d.c.Replaces[0] && d.restsOn(f)
	}), nil
}

// completed returns the candidate's fact, with absent fields taken from the fact
// that it rewrites.
func (d *decision) completed(known events.Fact) events.Fact {
	f := d.fact
	if f.Predicate == "" {
		f.Subject, f.Predicate, f.Cardinality = known.Subject, known.Predicate, known.Cardinality
		f.Object = objectIn(f.Text, known)
	}
	if f.Object == known.Object && !strings.Contains(lex.Fold(f.Text), lex.Fold(f.Object)) {
		f.Object = objectIn(f.Text, known) // brought along with the known triple
	}
	if f.Category == "" {
		f.Category = known.Category
	}
	if f.Kind == "" {
		f.Kind = known.Kind
	}
	return d.withSources(f, known)
}

// named resolves the ids to replace, in their order and without repetitions.
func (d *decision) named() ([]events.Fact, error) {
	found, err := d.view.byID(d.c.Replaces)
	if err != nil {
		return nil, err
	}
	var named []events.Fact
	var missing []string
	seen := map[string]bool{}
	for _, id := range d.c.Replaces {
		f, ok := found[id]
		switch {
		case seen[id]:
		case ok:
			named = append(named, f)
		default:
			missing = append(missing, id)
		}
		seen[id] = true
	}
	if len(missing) > 0 {
		return nil, &decide.FactConflictError{CandidateID: d.c.ID, Missing: missing, Found: named}
	}
	return named, nil
}
