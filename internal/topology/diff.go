package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Difference is one deviation of the broker from the declaration.
type Difference struct {
	Stream   string `json:"stream"`
	Consumer string `json:"consumer,omitempty"`
	// Field is what differs; empty where the stream or consumer is missing.
	Field string `json:"field,omitempty"`
	Want  string `json:"want"`
	Have  string `json:"have"`
	// Incompatible: services refuse to start. Other differences are an operator's
	// choice, such as the number of replicas.
	Incompatible bool `json:"incompatible"`
}

// String is the difference as one line.
func (d Difference) String() string {
	name := d.Stream
	if d.Consumer != "" {
		name += " " + d.Consumer
	}
	if d.Field != "" {
		name += " " + d.Field
	}
	return fmt.Sprintf("%s: want %s, have %s", name, d.Want, d.Have)
}

// Diff compares the broker with the declaration and looks for [Stream.Faults].
// Streams that are not declared are not looked at; consumers that are not
// declared are no difference, unless they take what a declared one should read.
func Diff(ctx context.Context, js jetstream.JetStream, decl Declaration) ([]Difference, error) {
	found := []Difference{}
	for _, want := range decl.Streams {
		have, err := inspect(ctx, js, want.Config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			found = append(found, Difference{Stream: want.Config.Name, Want: "to exist", Have: "none", Incompatible: true})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("inspect stream %s: %w", want.Config.Name, err)
		}
		found = append(found, diffStream(want, have)...)
	}
	return found, nil
}

// Check returns nil if services can run on the broker's topology; else an error
// that wraps [ErrIncompatible] and says how it differs.
func Check(ctx context.Context, js jetstream.JetStream, decl Declaration) error {
	differences, err := Diff(ctx, js, decl)
	if err != nil {
		return err
	}
	var lines []string
	for _, d := range differences {
		if d.Incompatible {
			lines = append(lines, d.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrIncompatible, strings.Join(lines, "; "))
}

// inspect reads a stream with all its consumers.
func inspect(ctx context.Context, js jetstream.JetStream, name string) (Stream, error) {
	s, err := js.Stream(ctx, name)
	if err != nil {
		return Stream{}, err
	}
	have := Stream{Config: s.CachedInfo().Config}
	if s.CachedInfo().State.Consumers == 0 {
		return have, nil
	}
	list := s.ListConsumers(ctx)
	for info := range list.Info() {
		have.Consumers = append(have.Consumers, info.Config)
	}
	return have, list.Err()
}

func diffStream(want, have Stream) []Difference {
	found := compare(Difference{Stream: want.Config.Name}, streamFacets, want.Config, have.Config)
	for _, wc := range want.Consumers {
		at := Difference{Stream: want.Config.Name, Consumer: wc.Durable}
		i := slices.IndexFunc(have.Consumers, func(c jetstream.ConsumerConfig) bool { return c.Durable == wc.Durable })
		if i < 0 {
			at.Want, at.Have, at.Incompatible = "to exist", "none", true
			found = append(found, at)
			continue
		}
		found = append(found, compare(at, consumerFacets, wc, have.Consumers[i])...)
	}
	return append(found, have.Faults()...)
}

// facet is one aspect of a configuration, in the form in which it is compared.
type facet[C any] struct {
	name string
	of   func(C) string
	// essential facets make services refuse to start.
	essential bool
}

func compare[C any](at Difference, facets []facet[C], want, have C) []Difference {
	var found []Difference
	for _, f := range facets {
		w, h := f.of(want), f.of(have)
		if w == h {
			continue
		}
		d := at
		d.Field, d.Want, d.Have, d.Incompatible = f.name, w, h, f.essential
		found = append(found, d)
	}
	return found
}

var streamFacets = []facet[jetstream.StreamConfig]{
	{"subjects", func(c jetstream.StreamConfig) string { return list(c.Subjects) }, true},
	{"transform", func(c jetstream.StreamConfig) string { return transformText(c.SubjectTransform) }, true},
	{"retention", func(c jetstream.StreamConfig) string { return c.Retention.String() }, true},
	{"discard", func(c jetstream.StreamConfig) string { return c.Discard.String() }, true},
	{"messages per subject", func(c jetstream.StreamConfig) string { return bound(c.MaxMsgsPerSubject) }, true},
	{"message size", func(c jetstream.StreamConfig) string { return bound(int64(c.MaxMsgSize)) }, true},
	{"acknowledgement", func(c jetstream.StreamConfig) string { return onOff(!c.NoAck) }, true},
	{"sealed", func(c jetstream.StreamConfig) string { return onOff(c.Sealed) }, true},
	{"purge", func(c jetstream.StreamConfig) string { return onOff(!c.DenyPurge) }, true},
	{"storage", func(c jetstream.StreamConfig) string { return c.Storage.String() }, true},
	{"duplicates window", func(c jetstream.StreamConfig) string { return c.Duplicates.String() }, false},
	{"direct get", func(c jetstream.StreamConfig) string { return onOff(c.AllowDirect) }, true},
	{"rollups", func(c jetstream.StreamConfig) string { return onOff(c.AllowRollup) }, false},
	{"messages", func(c jetstream.StreamConfig) string { return bound(c.MaxMsgs) }, false},
	{"bytes", func(c jetstream.StreamConfig) string { return bound(c.MaxBytes) }, false},
	{"age", func(c jetstream.StreamConfig) string { return span(c.MaxAge) }, false},
	{"replicas", func(c jetstream.StreamConfig) string { return strconv.Itoa(max(1, c.Replicas)) }, false},
	{"compression", func(c jetstream.StreamConfig) string { return c.Compression.String() }, false},
	{"description", func(c jetstream.StreamConfig) string { return c.Description }, false},
}

var consumerFacets = []facet[jetstream.ConsumerConfig]{
	{"filter", func(c jetstream.ConsumerConfig) string { return list(filtersOf(c)) }, true},
	{"deliver policy", func(c jetstream.ConsumerConfig) string { return c.DeliverPolicy.String() }, true},
	{"ack policy", func(c jetstream.ConsumerConfig) string { return c.AckPolicy.String() }, true},
	{"ack wait", func(c jetstream.ConsumerConfig) string { return c.AckWait.String() }, true},
	{"backoff", func(c jetstream.ConsumerConfig) string { return fmt.Sprint(c.BackOff) }, true},
	{"deliveries", func(c jetstream.ConsumerConfig) string { return bound(int64(c.MaxDeliver)) }, true},
	{"push subject", func(c jetstream.ConsumerConfig) string { return quoteEmpty(c.DeliverSubject) }, true},
	{"headers only", func(c jetstream.ConsumerConfig) string { return onOff(c.HeadersOnly) }, true},
	{"priority policy", func(c jetstream.ConsumerConfig) string { return priorityText(c.PriorityPolicy) }, true},
	{"ack pending", func(c jetstream.ConsumerConfig) string { return bound(int64(c.MaxAckPending)) }, false},
	{"description", func(c jetstream.ConsumerConfig) string { return c.Description }, false},
}

func list(values []string) string {
	sorted := slices.Sorted(slices.Values(values))
	return quoteEmpty(strings.Join(sorted, ", "))
}

// bound is a limit; JetStream writes none as 0 or as -1.
func bound(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

// span is a bound in time; JetStream writes none as 0.
func span(d time.Duration) string {
	if d <= 0 {
		return "unlimited"
	}
	return d.String()
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func transformText(t *jetstream.SubjectTransformConfig) string {
	if t == nil {
		return "none"
	}
	return t.Source + " to " + t.Destination
}

func priorityText(p jetstream.PriorityPolicy) string {
	text, err := p.MarshalJSON()
	if err != nil {
		return "unknown"
	}
	return quoteEmpty(strings.Trim(string(text), `"`))
}
