package events

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"palimpsest/pkg/scope"
)

// The nouns of subjects: the second token, one a stream (the last two are core
// subjects that no stream binds).
const (
	NounEpisodes   = "episodes"
	NounStored     = "stored"
	NounTicks      = "ticks"
	NounCandidates = "candidates"
	NounDeltas     = "deltas"
	NounCommands   = "commands"
	NounAudit      = "audit"
	NounAccess     = "access"
	NounDeadLetter = "deadletter"
	NounOutcomes   = "outcomes"
	NounIncognito  = "incognito"
)

// Partitions is the number of partitions of the EPISODES stream.
const Partitions = 16

const subjectRoot = "palimpsest."

// Subject is where a payload is published: its noun, then its owner's tokens.
// An incognito episode goes where no stream keeps it.
func Subject(p Payload) string {
	if own, ok := p.(interface{ subject() string }); ok {
		return own.subject()
	}
	return subjectRoot + p.Kind().Noun() + "." + p.Owner().Tokens()
}

func (e EpisodeRecorded) subject() string {
	if e.Mode == ModeIncognito {
		return IncognitoSubject(e.Scope)
	}
	return EpisodeSubject(e.Scope)
}

func (o OutcomeAnnounced) subject() string { return OutcomeSubject(o.Outcome.CorrelationID) }

func (t TickIssued) subject() string { return classSubject(NounTicks, t.Batch) }

func (c CandidatesExtracted) subject() string { return classSubject(NounCandidates, c.Batch) }

func (d DeltasDecided) subject() string { return classSubject(NounDeltas, d.Batch) }

// classSubject is where the work of a rule's class is published:
//
//	palimpsest.{noun}.{class}.{project}.{user}.{agent}.{session}
func classSubject(noun string, b Batch) string {
	return subjectRoot + noun + "." + string(cmp.Or(b.Class, ClassRules)) + "." + b.Scope.Tokens()
}

func (m MessageBuried) subject() string { return DeadLetterSubject(m.Service, m.Scope) }

// EpisodeSubject is where the episodes and session ends of s are published:
//
//	palimpsest.episodes.{project}.{user}.{agent}.{session}
//
// The stream stores them with their partition before the project.
func EpisodeSubject(s scope.Scope) string {
	return subjectRoot + NounEpisodes + "." + s.Tokens()
}

// IncognitoSubject is where the incognito episodes of s are sent, as requests.
func IncognitoSubject(s scope.Scope) string {
	return subjectRoot + NounIncognito + "." + s.Tokens()
}

// OutcomeSubject is the core subject that wakes those who wait for the outcome
// of a correlation id.
func OutcomeSubject(correlationID string) string {
	return subjectRoot + NounOutcomes + "." + subjectToken(correlationID)
}

// DeadLetterSubject is where service buries messages of s. Levels that could
// not be read are absent; the zero scope has a subject, too.
func DeadLetterSubject(service string, s scope.Scope) string {
	return subjectRoot + NounDeadLetter + "." + subjectToken(service) + "." + s.Fact().Tokens()
}

// subjectToken makes one token of any text. A text that is too long for a token is
// replaced by its hash.
func subjectToken(text string) string {
	switch {
	case text == "":
		return "_"
	case len(text) > scope.MaxIdentifier:
		return HashID(text)
	}
	return scope.Encode(text)
}

// ParseSubject reads the noun and the scope of a subject, as published or, for
// episodes, as stored with the partition token, with or without a class. Outcome subjects name no scope;
// dead-letter subjects name as much of one as could be read.
//
// The error is a [*FieldError]; s then holds the levels that could be read.
func ParseSubject(subject string) (noun string, s scope.Scope, err error) {
	rest, ok := strings.CutPrefix(subject, subjectRoot)
	if !ok {
		return "", s, notOurs(subject)
	}
	noun, rest, ok = strings.Cut(rest, ".")
	if !ok {
		return "", s, notOurs(subject)
	}
	switch noun {
	case NounEpisodes:
		if strings.Count(rest, ".") == 4 {
			var partition string
			partition, rest, _ = strings.Cut(rest, ".")
			if err := checkPartition(partition); err != nil {
				s, _ = scope.ParsePartialTokens(rest)
				return noun, s, err
			}
		}
	case NounTicks, NounCandidates, NounDeltas:
		// Versions before classes published without one.
		if strings.Count(rest, ".") == 4 {
			var class string
			class, rest, _ = strings.Cut(rest, ".")
			if !Class(class).Valid() {
				s, _ = scope.ParsePartialTokens(rest)
				return noun, s, &FieldError{Field: "class", Code: CodeSubjectToken, Reason: strconv.Quote(clip(class)) + " is no class of rules"}
			}
		}
	case NounStored, NounCommands, NounAudit, NounAccess, NounIncognito:
	case NounOutcomes:
		if rest == "" || strings.Contains(rest, ".") {
			return noun, s, notOurs(subject)
		}
		return noun, s, nil
	case NounDeadLetter:
		_, rest, _ = strings.Cut(rest, ".")
		s, err = scope.ParsePartialTokens(rest)
		return noun, s, scopeError(err)
	default:
		return "", s, notOurs(subject)
	}
	s, err = scope.ParseTokens(rest)
	if err != nil {
		s, _ = scope.ParsePartialTokens(rest)
		return noun, s, scopeError(err)
	}
	return noun, s, nil
}

func notOurs(subject string) error {
	return &FieldError{Field: "subject", Code: CodeSubjectToken, Reason: strconv.Quote(clip(subject)) + " is no subject of ours"}
}

func checkPartition(token string) error {
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 || n >= Partitions || strconv.Itoa(n) != token {
		return &FieldError{Field: "partition", Code: CodeSubjectToken, Reason: strconv.Quote(clip(token)) + " is no partition"}
	}
	return nil
}

// scopeError names the level of a scope that is refused.
func scopeError(err error) error {
	var refused *scope.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return &FieldError{Field: "scope", Code: CodeInvalidField, Reason: err.Error()}
	}
	code := CodeInvalidField
	switch {
	case errors.Is(err, scope.ErrToken):
		code = CodeSubjectToken
	case errors.Is(err, scope.ErrMissing):
		code = CodeScopeMissing
	}
	return &FieldError{Field: refused.Level, Code: code, Reason: refused.Reason}
}

// Noun is where messages of the kind travel: the second token of their subjects,
// empty for an unknown kind.
func (k Kind) Noun() string {
	switch k {
	case KindEpisodeRecorded, KindSessionEnded:
		return NounEpisodes
	case KindEpisodeStored:
		return NounStored
	case KindTickIssued:
		return NounTicks
	case KindCandidatesExtracted:
		return NounCandidates
	case KindCommandRequested:
		return NounCommands
	case KindDeltasDecided:
		return NounDeltas
	case KindEffectCommitted, KindUserErased:
		return NounAudit
	case KindFactReturned:
		return NounAccess
	case KindOutcomeAnnounced:
		return NounOutcomes
	case KindMessageBuried:
		return NounDeadLetter
	}
	return ""
}
