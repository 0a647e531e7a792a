package auth

import (
	"context"
	"slices"
)

// Caller is who makes a request.
type Caller struct {
	// KeyID is empty for callers without a key.
	KeyID string
	// Project is the only project that the caller reaches; empty for all.
	Project string
	Role    Role
	// Users, where there are any, are the only users that the caller reaches.
	Users []string

	ended context.Context //nolint:containedctx // ends with the key; nil without one
}

// Anyone is the caller where no keys are required.
var Anyone = Caller{Role: Admin}

// Reaches reports whether the caller may read and write data of a project.
func (c Caller) Reaches(project string) bool {
	return c.Role > Anonymous && (c.Project == "" || c.Project == project)
}

// ReachesUser reports whether the caller may read and write data of a user; an
// empty one is that of data without a user.
func (c Caller) ReachesUser(user string) bool {
	return c.Role > Anonymous && (len(c.Users) == 0 || slices.Contains(c.Users, user))
}

// Name is what records say of the caller.
func (c Caller) Name() string {
	if c.KeyID == "" {
		return "api:anonymous"
	}
	return "api:" + c.KeyID
}

// whileValid returns a context of requests of the caller of ctx that ends, besides,
// when the caller's key is revoked. An answer may go on for as long as it is read.
func whileValid(ctx context.Context) (context.Context, context.CancelFunc) {
	ended := Of(ctx).ended
	if ended == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ended, cancel)
	return ctx, func() { stop(); cancel() }
}

type callerKey struct{}

// With returns a context of requests of c.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of returns the caller of a context. Without one, the caller has the role
// [Anonymous].
func Of(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
