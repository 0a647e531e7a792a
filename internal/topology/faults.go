package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Faults finds what JetStream accepts silently and wrongly: a transform that is
// not applied to what the stream listens on, a filter that no stored subject
// can match, and consumers of a work queue that leave subjects unread or read
// them twice. Everything it returns is incompatible.
func (s Stream) Faults() []Difference {
	found := transformFaults(s.Config)
	stored := storedSubjects(s.Config)
	for _, c := range s.Consumers {
		for _, filter := range filtersOf(c) {
			if filter == "" || slices.ContainsFunc(stored, func(subject string) bool { return server.SubjectsCollide(subject, filter) }) {
				continue
			}
			found = append(found, Difference{
				Stream: s.Config.Name, Consumer: c.Durable, Field: "filter", Incompatible: true,
				Want: "one that matches what is stored, such as " + stored[0], Have: filter + ", which matches nothing",
			})
		}
	}
	if s.Config.Retention != jetstream.WorkQueuePolicy {
		return found
	}
	return append(found, coverageFaults(s.Config.Name, stored, s.Consumers)...)
}

func transformFaults(cfg jetstream.StreamConfig) []Difference {
	transform := cfg.SubjectTransform
	if transform == nil {
		return nil
	}
	if len(cfg.Subjects) == 1 && transform.Source == cfg.Subjects[0] {
		return nil
	}
	return []Difference{{
		Stream: cfg.Name, Field: "transform source", Incompatible: true,
		Want: "the stream's one subject " + strings.Join(cfg.Subjects, ", "), Have: quoteEmpty(transform.Source),
	}}
}

// coverageFaults looks for gaps and overlaps. A pattern of wildcards is covered
// by filters together only if one of them covers it alone: a subject of tokens
// that no filter spells out matches just those that have wildcards throughout.
func coverageFaults(stream string, stored []string, consumers []jetstream.ConsumerConfig) []Difference {
	var found []Difference
	var gaps []string
	for _, subject := range stored {
		if !slices.ContainsFunc(consumers, func(c jetstream.ConsumerConfig) bool {
			return slices.ContainsFunc(filtersOf(c), func(filter string) bool { return filter == "" || covers(filter, subject) })
		}) {
			gaps = append(gaps, subject)
		}
	}
	if len(gaps) > 0 {
		found = append(found, Difference{
			Stream: stream, Field: "coverage", Incompatible: true,
			Want: "a consumer for every subject", Have: "none for " + summary(gaps),
		})
	}
	for i, a := range consumers {
		for _, b := range consumers[i+1:] {
			if filter, ok := overlap(a, b); ok {
				found = append(found, Difference{
					Stream: stream, Consumer: b.Durable, Field: "filter", Incompatible: true,
					Want: "none that overlaps that of " + a.Durable, Have: quoteEmpty(filter),
				})
			}
		}
	}
	return found
}

func overlap(a, b jetstream.ConsumerConfig) (filter string, found bool) {
	for _, fa := range filtersOf(a) {
		for _, fb := range filtersOf(b) {
			if fa == "" || fb == "" || server.SubjectsCollide(fa, fb) {
				return fb, true
			}
		}
	}
	return "", false
}

// filtersOf are a consumer's filters; one that is empty matches everything.
func filtersOf(c jetstream.ConsumerConfig) []string {
	if len(c.FilterSubjects) > 0 {
		return c.FilterSubjects
	}
	return []string{c.FilterSubject}
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

func summary(subjects []string) string {
	if len(subjects) <= 2 {
		return strings.Join(subjects, ", ")
	}
	return fmt.Sprintf("%s and %d more", subjects[0], len(subjects)-1)
}
