package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"palimpsest/pkg/events"
)

const (
	// keepReplies is how long a reply is kept.
	keepReplies = 7 * 24 * time.Hour
	// keyPrefix begins the keys of replies.
	keyPrefix = "llm "
	// maxTries is how many unreadable replies a request may get before that counts
	// as its own fault, though no other request gets a better one.
	maxTries = 8
)

// Cached returns g with a cache of replies: a repeated request gets its earlier
// reply from kept, so that a redelivered message costs no second call. A reply is
// stored before it is returned.
//
// An unreadable reply is requested again, with a description of the fault, after a
// pause. The error is final, and no [PausedError], once the model has answered other
// requests since, or after some tries.
func Cached(g *Governor, kept Replies, now func() time.Time) Model {
	return &cached{g, kept, now}
}

type cached struct {
	*Governor
	kept Replies
	now  func() time.Time
}

// row is what is kept of a request.
type row struct {
	// Reply is set once there is one; before, its counts are those of replies that
	// could not be read.
	Reply    Reply     `json:"reply"`
	Answered bool      `json:"answered"`
	Since    time.Time `json:"since,omitzero"` // when the first of those came
	Wrong    string    `json:"wrong,omitempty"`
}

// Complete implements [Model].
func (c *cached) Complete(ctx context.Context, req Request) (Reply, error) {
	key := c.key(req)
	raw, err := c.kept.Cached(ctx, req.Scope, key)
	if err != nil {
		return Reply{}, fmt.Errorf("llm: read a kept reply: %w", err)
	}
	var known row
	if raw != nil && json.Unmarshal(raw, &known) == nil && known.Answered {
		c.charge(ctx, key, known.Reply)
		return known.Reply, nil
	}
	if known.Wrong != "" {
		req.User += "\n\nYour last reply to this could not be read: " + known.Wrong + ". Reply again, with the JSON alone."
	}
	reply, err := c.Governor.Complete(ctx, req)
	var unkept *unkeptError
	if errors.As(err, &unkept) {
		err = nil
	}
	if err != nil && (!errors.Is(err, ErrMalformed) || !wasAsked(err)) {
		return reply, err
	}
	before := known.Reply
	reply.Calls, reply.InputTokens = before.Calls+1, before.InputTokens+reply.InputTokens
	reply.CachedTokens, reply.OutputTokens = before.CachedTokens+reply.CachedTokens, before.OutputTokens+reply.OutputTokens
	known.Reply, known.Answered = reply, err == nil
	c.charge(ctx, key, reply)
	if err != nil {
		err = known.wrong(err, c.Replied(), c.now())
	}
	if raw, lost := json.Marshal(known); lost != nil {
		return reply, fmt.Errorf("llm: keep a reply: %w", lost)
	} else if lost := c.kept.PutCached(context.WithoutCancel(ctx), req.Scope, key, raw, c.now().Add(keepReplies)); lost != nil {
		return reply, fmt.Errorf("llm: keep a reply: %w", lost)
	}
	if unkept != nil {
		return reply, unkept
	}
	return reply, err
}

// wasAsked reports whether err follows a call. While a model pauses because of one
// request, others are refused with its reason.
func wasAsked(err error) bool {
	paused := (*PausedError)(nil)
	return !errors.As(err, &paused) || paused.Asked
}

// charge puts a request on the bill of its context.
func (c *cached) charge(ctx context.Context, key string, reply Reply) {
	put(ctx, events.Spent{
		Request: strings.TrimPrefix(key, keyPrefix)[:16], Model: c.Info().Model, Calls: reply.Calls,
		InputTokens: reply.InputTokens, OutputTokens: reply.OutputTokens, Dollars: c.limits.Dollars(reply),
	})
}

// wrong records an unreadable reply. It returns the error of the request: that of
// the pause, or its cause where the fault is the request's.
func (r *row) wrong(err error, replied, now time.Time) error {
	r.Wrong = clip(err.Error())
	if paused := (*PausedError)(nil); errors.As(err, &paused) {
		r.Wrong = clip(paused.Err.Error())
		if !r.Since.IsZero() && replied.After(r.Since) || r.Reply.Calls >= maxTries {
			err = paused.Err
		}
	}
	if r.Since.IsZero() {
		r.Since = now
	}
	return err
}

// key identifies a request to a model: by its own identity, or by all of it.
func (c *cached) key(req Request) string {
	info := c.Info()
	parts := []string{info.Provider, info.Model, req.Name, req.System, string(req.Schema)}
	if req.Identity != "" {
		parts = append(parts, "identity", req.Identity)
	} else {
		parts = append(parts, "user", req.User)
	}
	sum := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(p), p) // a hash does not fail
	}
	return keyPrefix + hex.EncodeToString(sum.Sum(nil))
}
