package events

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"palimpsest/pkg/scope"
)

// Role says who spoke.
type Role string

// The roles of an episode.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
	RoleTool      Role = "tool"
)

// Mode says how an episode takes part in memory.
type Mode string

// The modes of an episode. The empty mode means persistent.
const (
	ModePersistent Mode = "persistent"
	ModeIncognito  Mode = "incognito"
	ModeBackfill   Mode = "backfill"
)

// Metadata keys with a meaning; any other key is copied to the facts that come
// of the episode.
const (
	MetaIntent    = "intent"   // noop | update | delete
	MetaReplaces  = "replaces" // ids of facts of the same fact scope
	MetaSubject   = "subject"
	MetaPredicate = "predicate"
	MetaObject    = "object"
	MetaTimezone  = "tz" // IANA zone or UTC offset that relative dates count from
)

// EpisodeRecorded is something that happened: one message of a conversation, as
// its publisher tells it. The scope comes from the subject.
type EpisodeRecorded struct {
	Scope   scope.Scope `json:"-"`
	Role    Role        `json:"role"`
	Content string      `json:"content"`
	// Timestamp is when it happened, RFC 3339 or unix seconds on the wire; zero
	// where the publisher gave none (arrival counts). It keeps its UTC offset.
	Timestamp  Timestamp      `json:"timestamp,omitzero"`
	SourceNode string         `json:"source_node,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Mode       Mode           `json:"mode,omitempty"`
	// Infer false stores the content verbatim as a fact; nil means true.
	Infer *bool `json:"infer,omitempty"`
	// Request asks for a tick of its own (rule `add`). Prompt asks for one too, and
	// replaces the configured extraction prompt where a model extracts.
	Request bool   `json:"request,omitempty"`
	Prompt  string `json:"prompt,omitempty"`
}

// Incognito reports whether a message asks for [ModeIncognito]: a plain body, or
// an envelope of CloudEvents. It looks at bodies that are refused too, so that
// nothing else of them need be right.
func Incognito(body []byte) bool {
	type mode struct{ Mode any }
	var m struct {
		mode
		Data   mode
		Base64 []byte `json:"data_base64"`
	}
	// An error of one member leaves the others read.
	_ = json.Unmarshal(body, &m)
	return m.Mode == string(ModeIncognito) || m.Data.Mode == string(ModeIncognito) || len(m.Base64) > 0 && Incognito(m.Base64)
}

// Kind implements [Payload].
func (EpisodeRecorded) Kind() Kind { return KindEpisodeRecorded }

// Owner implements [Payload].
func (e EpisodeRecorded) Owner() scope.Scope { return e.Scope }

// Validate implements [Payload]. Size limits are configuration and are checked
// by ingest.
func (e EpisodeRecorded) Validate() error {
	switch e.Role {
	case RoleUser, RoleAssistant, RoleSystem, RoleTool:
	case "":
		return invalid("role", "is required: user, assistant, system or tool")
	default:
		return invalid("role", "%q is none of user, assistant, system, tool", clip(string(e.Role)))
	}
	switch e.Mode {
	case "", ModePersistent, ModeBackfill, ModeIncognito:
	default:
		return invalid("mode", "%q is none of persistent, incognito, backfill", clip(string(e.Mode)))
	}
	if e.Content == "" {
		return invalid("content", "is required: 1 byte or more of text")
	}
	if !utf8.ValidString(e.Content) {
		return invalid("content", "is not valid UTF-8")
	}
	return validateMeaning(e.Metadata)
}

func validateMeaning(meta map[string]any) error {
	if v, ok := meta[MetaIntent]; ok {
		switch v {
		case "noop", "update", "delete":
		default:
			return invalid("metadata.intent", "%v is none of noop, update, delete", clip(fmt.Sprint(v)))
		}
		if v != "noop" && meta[MetaReplaces] == nil {
			return invalid("metadata.intent", "%v needs metadata.replaces", v)
		}
	}
	for _, key := range []string{MetaSubject, MetaPredicate, MetaObject, MetaTimezone} {
		if v, ok := meta[key]; ok {
			if s, isText := v.(string); !isText || strings.TrimSpace(s) == "" {
				return invalid("metadata."+key, "must be a non-empty string")
			}
		}
	}
	if v, ok := meta[MetaReplaces]; ok {
		if _, err := Replaces(v); err != nil {
			return err
		}
	}
	return nil
}

// Replaces reads the metadata key "replaces": a fact id or a non-empty list of
// fact ids.
func Replaces(v any) ([]string, error) {
	switch ids := v.(type) {
	case string:
		if ids != "" {
			return []string{ids}, nil
		}
	case []any:
		out := make([]string, 0, len(ids))
		for _, id := range ids {
			s, ok := id.(string)
			if !ok || s == "" {
				return nil, invalid("metadata.replaces", "must hold fact ids")
			}
			out = append(out, s)
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, invalid("metadata.replaces", "must be a fact id or a non-empty list of fact ids")
}

func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// EndCause says why a session ended.
type EndCause string

// The causes of a session's end. A publisher may name the first three.
const (
	EndExplicit   EndCause = "explicit"
	EndDisconnect EndCause = "disconnect"
	EndTimeout    EndCause = "timeout"
	EndIdle       EndCause = "idle"
	EndSwitched   EndCause = "switched"
)

// SessionEnded ends the session of its scope, in order after its episodes.
type SessionEnded struct {
	Scope     scope.Scope `json:"-"`
	Cause     EndCause    `json:"cause"`
	Timestamp Timestamp   `json:"timestamp,omitzero"`
	// LastOrdinal, where it is not 0, is the session's newest episode as the
	// sender saw it: if something was said since, the session goes on. A
	// publisher leaves it out and ends the session wherever it stands.
	LastOrdinal uint64 `json:"last_ordinal,omitempty"`
}

// Identity implements [Identified]: all processes that end a session after the same
// LastOrdinal publish the same id.
func (s SessionEnded) Identity() []string {
	parts := []string{s.Scope.Project, s.Scope.Key(), strconv.FormatUint(s.LastOrdinal, 10)}
	if s.LastOrdinal == 0 {
		parts = append(parts, s.Timestamp.UTC().Format(time.RFC3339Nano))
	}
	return parts
}

// Kind implements [Payload].
func (SessionEnded) Kind() Kind { return KindSessionEnded }

// Owner implements [Payload].
func (s SessionEnded) Owner() scope.Scope { return s.Scope }

// Validate implements [Payload].
func (s SessionEnded) Validate() error {
	switch s.Cause {
	case EndExplicit, EndDisconnect, EndTimeout, EndIdle, EndSwitched:
	default:
		return invalid("cause", "%q is none of explicit, disconnect, timeout", clip(string(s.Cause)))
	}
	if s.Scope.Session == "" {
		return invalid("session", "is required to end a session")
	}
	return nil
}

// EpisodeStored wakes the readers that wait for a scope. It is safe to lose, repeat
// and reorder.
type EpisodeStored struct {
	Header
	EpisodeID string `json:"episode_id,omitempty"`
	// LastOrdinal is the highest ordinal of the fact scope when it was sent.
	LastOrdinal uint64    `json:"last_ordinal"`
	StoredAt    time.Time `json:"stored_at"`
	// Run names a rule that shall read the pending episodes up to LastOrdinal now,
	// independent of its cadence.
	Run string `json:"run,omitempty"`
}

// Kind implements [Payload].
func (EpisodeStored) Kind() Kind { return KindEpisodeStored }

// Validate implements [Payload].
func (s EpisodeStored) Validate() error { return s.Header.validate() }
