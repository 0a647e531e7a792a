package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// Permissions are the subjects that a service may publish on and listen to. What
// Deny names is refused although Allow has it.
type Permissions struct {
	Publish   []string `json:"publish"`
	Deny      []string `json:"deny,omitempty"`
	Subscribe []string `json:"subscribe"`
}

// arrow lists what a service does beside reading its own consumers, sending failing
// messages back to their streams, and burying messages that it refuses.
type arrow struct {
	makes  []string // nouns that it publishes, also in place of messages that it buries
	looks  []string // streams that it reads single messages of
	reads  []string // streams that it reads from a place of its choice on
	clears []string // streams that it deletes single messages of
	hears  []string // subjects beside its inbox
	puts   []string // entries of buckets
	// answers: it refuses by answering its callers, and buries nothing.
	answers bool
}

// arrows are those of the services. Ingest and the consolidator look whether the
// memory store is behind the streams, and read DEADLETTER to leave out buried
// messages when they read a stream again. Query sends a retried message to the
// stream that it came from, reads the rest of a clipped letter there, and counts the
// episodes that wait to be stored; it reads the API keys, and writes only how much each
// is used. Ingest deletes incognito episodes, which no
// stream may keep.
var arrows = map[string]arrow{
	"ingest": {
		makes: []string{events.NounStored}, looks: []string{StreamEpisodes, StreamAudit, StreamDeadLetter},
		reads: []string{StreamEpisodes, StreamDeadLetter}, clears: []string{StreamEpisodes},
	},
	"scheduler": {makes: []string{events.NounTicks, events.NounCommands, events.NounEpisodes}},
	"extractor": {makes: []string{events.NounCandidates}},
	"decider":   {makes: []string{events.NounDeltas, events.NounCandidates}},
	"consolidator": {
		makes: []string{events.NounAudit, events.NounCandidates, events.NounCommands, events.NounDeltas, events.NounOutcomes},
		looks: []string{StreamEpisodes, StreamAudit, StreamDeadLetter}, reads: []string{StreamAudit, StreamDeadLetter},
	},
	"query": {
		makes: []string{
			events.NounEpisodes, events.NounCommands, events.NounAccess,
			events.NounStored, events.NounTicks, events.NounCandidates, events.NounDeltas,
		},
		looks: []string{
			StreamEpisodes, StreamStored, StreamTicks, StreamCandidates, StreamDeltas, StreamCommands, StreamAudit, StreamAccess, StreamDeadLetter,
			StreamKeys,
		},
		reads:   []string{StreamAudit, StreamEpisodes, StreamKeys},
		puts:    []string{SubjectKeys + "use.>"},
		clears:  []string{StreamDeadLetter},
		hears:   []string{"palimpsest." + events.NounOutcomes + ".*"},
		answers: true,
	},
}

// ServicePermissions are the arrows of each service as a server of others holds it to
// them: the subjects that it reads and makes, and the API of JetStream as far as
// it needs it.
//
// They bound what a stolen credential or a mistake can do. They do not make the
// services of one account strangers: a server checks no reply subjects.
func (d Declaration) ServicePermissions() map[string]Permissions {
	all := make(map[string]Permissions, len(arrows))
	for service, a := range arrows {
		p := Permissions{
			Publish: []string{
				"$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.INFO.*",
				"$JS.API.CONSUMER.NAMES.*", "$JS.API.CONSUMER.LIST.*", "$JS.API.CONSUMER.INFO.*.*",
			},
			Subscribe: append([]string{Inbox(service) + ".>"}, a.hears...),
		}
		for _, noun := range a.makes {
			p.allow("palimpsest.%s.>", noun)
		}
		for _, subject := range a.puts {
			p.allow("%s", subject)
		}
		if !a.answers {
			p.allow("palimpsest.%s.%s.>", events.NounDeadLetter, service)
		}
		for _, s := range d.Streams {
			p.stream(service, a, s)
		}
		all[service] = p
	}
	return all
}

// stream adds what a service may do with one.
func (p *Permissions) stream(service string, a arrow, s Stream) {
	name := s.Config.Name
	for _, c := range s.Consumers {
		if owner, _, _ := strings.Cut(c.Durable, "-"); owner != service {
			continue
		}
		p.allow("$JS.API.CONSUMER.MSG.NEXT.%s.%s", name, c.Durable)
		p.allow("$JS.ACK.%s.%s.>", name, c.Durable)
		if s.Config.Retention == jetstream.WorkQueuePolicy {
			for _, filter := range filtersOf(c) {
				p.allow("%s", filter)
			}
		}
	}
	if slices.Contains(a.looks, name) {
		p.allow("$JS.API.STREAM.MSG.GET.%s", name)
	}
	if slices.Contains(a.clears, name) {
		p.allow("$JS.API.STREAM.MSG.DELETE.%s", name)
	}
	if slices.Contains(a.reads, name) {
		p.read(service, s)
	}
}

// read allows consumers of one's own, which have no name before they are made,
// and keeps the service from those that are declared.
func (p *Permissions) read(service string, s Stream) {
	name := s.Config.Name
	p.allow("$JS.API.CONSUMER.CREATE.%s.*", name)
	p.allow("$JS.API.CONSUMER.CREATE.%s.*.>", name)
	p.allow("$JS.API.CONSUMER.MSG.NEXT.%s.*", name)
	p.allow("$JS.API.CONSUMER.DELETE.%s.*", name)
	for _, c := range s.Consumers {
		p.deny("$JS.API.CONSUMER.CREATE.%s.%s", name, c.Durable)
		p.deny("$JS.API.CONSUMER.CREATE.%s.%s.>", name, c.Durable)
		p.deny("$JS.API.CONSUMER.DELETE.%s.%s", name, c.Durable)
		if owner, _, _ := strings.Cut(c.Durable, "-"); owner != service {
			p.deny("$JS.API.CONSUMER.MSG.NEXT.%s.%s", name, c.Durable)
		}
	}
}

func (p *Permissions) allow(format string, args ...any) {
	subject := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(p.Publish, func(allowed string) bool { return covers(allowed, subject) }) {
		p.Publish = append(p.Publish, subject)
	}
}

func (p *Permissions) deny(format string, args ...any) {
	p.Deny = append(p.Deny, fmt.Sprintf(format, args...))
}

// Inbox is the subject prefix of the replies to a service. Each service has its
// own, so that no other service of the account can read them.
func Inbox(service string) string { return "_INBOX." + service }

// Presence is the subject that a process with a service listens on while it is connected.
// Nothing is sent there but the question whether it does.
func Presence(name string) string { return Inbox(name) + ".connected" }

// Processes are the names of the processes that read and write streams: each service, and
// all of them in one.
func Processes() []string { return append(slices.Clone(serviceOrder), "up") }

// ServerText is the permissions as a NATS server reads them: one variable for
// each service, to be referred to by its user.
func ServerText(all map[string]Permissions) string {
	var b strings.Builder
	b.WriteString("# Made from the topology: `palimpsest topology permissions` prints it.\n")
	for _, service := range slices.Sorted(maps.Keys(all)) {
		p := all[service]
		_, _ = fmt.Fprintf(&b, "%s {\n  publish {\n", service)
		listText(&b, "    allow", p.Publish)
		if len(p.Deny) > 0 {
			listText(&b, "    deny", p.Deny)
		}
		b.WriteString("  }\n")
		listText(&b, "  subscribe", p.Subscribe)
		b.WriteString("}\n")
	}
	return b.String()
}

func listText(b *strings.Builder, name string, subjects []string) {
	_, _ = fmt.Fprintf(b, "%s: [\n", name)
	for _, s := range subjects {
		_, _ = fmt.Fprintf(b, "      %q\n", s)
	}
	b.WriteString("    ]\n")
}
