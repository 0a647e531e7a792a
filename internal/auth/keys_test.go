package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/cursor"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// rig is a bucket, and a ring that follows it.
type rig struct {
	js    jetstream.JetStream
	keys  *auth.Keys
	ring  *auth.Ring
	marks []cursor.Store
	now   func() time.Time
}

func start(t *testing.T, limits auth.Limits, now func() time.Time) *rig {
	t.Helper()
	env := brokertest.Start(t)
	r := &rig{js: env.JS, keys: auth.NewKeys(bucket.New(env.JS), now), now: now}
	r.follow(t, limits)
	return r
}

// follow runs another ring on the bucket until the test ends, and makes it r's.
func (r *rig) follow(t *testing.T, limits auth.Limits) (stop func()) {
	t.Helper()
	ring, err := auth.OpenRing(t.Context(), bucket.New(r.js), r.marks, limits, r.now, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ring.Run(ctx) }()
	stop = func() {
		if cancel(); ended != nil {
			if err := <-ended; err != nil {
				t.Error(err)
			}
			ended = nil
		}
	}
	t.Cleanup(stop)
	r.ring = ring
	return stop
}

func (r *rig) create(t *testing.T, k auth.Key) (auth.Key, string) {
	t.Helper()
	made, token, err := r.keys.Create(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	r.until(t, token, nil)
	return made, token
}

// until waits until the ring answers a token with an error, and returns how long
// that took.
func (r *rig) until(t *testing.T, token string, want error) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		_, _, err := r.ring.Admit(token)
		if errors.Is(err, want) {
			return time.Since(began)
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("the ring answers %v, want %v", err, want)
		}
		tick := time.NewTimer(2 * time.Millisecond)
		<-tick.C
	}
}

var writer = auth.Key{Name: "bot", Project: "acme", Role: auth.Writer}

func TestP6KeyLifecycle(t *testing.T) {
	t.Parallel()
	r := start(t, auth.Limits{}, time.Now)
	if r.ring.Any() {
		t.Error("a key in an empty bucket")
	}
	key, token := r.create(t, auth.Key{Project: "acme", Role: auth.Writer, Users: []string{"nora"}})
	caller, _, err := r.ring.Admit(token)
	if err != nil || caller.KeyID != key.ID || !caller.Reaches("acme") || caller.Reaches("other") ||
		!caller.ReachesUser("nora") || caller.ReachesUser("bob") || caller.ReachesUser("") {
		t.Errorf("caller %+v, %v", caller, err)
	}
	for name, wrong := range map[string]string{
		"empty": "", "another secret": token[:len(token)-64] + strings.Repeat("0", 64), "another id": "pal_000000000000" + token[16:],
		"no prefix": token[4:], "the hash": token[:17] + key.Hash, "longer": token + "0", "upper case": strings.ToUpper(token),
	} {
		if _, _, err := r.ring.Admit(wrong); !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, second, err := r.keys.Rotate(t.Context(), key.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.until(t, second, nil)
	if _, _, err := r.ring.Admit(token); !errors.Is(err, auth.ErrUnknown) {
		t.Errorf("the secret before the rotation: %v", err)
	}
	if _, err := r.keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if took := r.until(t, second, auth.ErrRevoked); took > time.Second {
		t.Errorf("a revoked key worked for %v", took)
	}
	if !r.ring.Any() {
		t.Error("the revoked key does not count any more")
	}
	if _, _, err := r.keys.Rotate(t.Context(), key.ID, 0); !errors.Is(err, auth.ErrRevoked) {
		t.Errorf("rotate a revoked key: %v", err)
	}
	if _, err := r.keys.Revoke(t.Context(), "000000000000"); !errors.Is(err, auth.ErrNotFound) {
		t.Errorf("revoke an unknown key: %v", err)
	}
}

func TestRotationWithGrace(t *testing.T) {
	t.Parallel()
	clock := newClock()
	r := start(t, auth.Limits{}, clock.now)
	key, first := r.create(t, writer)
	_, second, err := r.keys.Rotate(t.Context(), key.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.until(t, second, nil)
	r.until(t, first, nil)
	clock.add(time.Hour)
	r.until(t, first, auth.ErrUnknown)
	r.until(t, second, nil)
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	clock := newClock()
	r := start(t, auth.Limits{}, clock.now)
	at := clock.now().Add(time.Minute)
	_, token := r.create(t, auth.Key{Project: "acme", Role: auth.Reader, ExpiresAt: &at})
	clock.add(time.Minute)
	r.until(t, token, auth.ErrExpired)
}

// The bucket holds no secret, so a reader of it cannot call.
func TestBucketHoldsNoSecret(t *testing.T) {
	t.Parallel()
	r := start(t, auth.Limits{}, time.Now)
	_, token := r.create(t, writer)
	stream, err := r.js.Stream(t.Context(), topology.StreamKeys)
	if err != nil {
		t.Fatal(err)
	}
	secret := token[17:]
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(m.Data), secret) || strings.Contains(m.Subject, secret) {
			t.Errorf("message %d holds the secret", seq)
		}
	}
}

// Use is written when a ring stops, at the latest, and the next one counts on.
func TestUseIsKept(t *testing.T) {
	t.Parallel()
	clock := newClock()
	env := brokertest.Start(t)
	r := &rig{js: env.JS, keys: auth.NewKeys(bucket.New(env.JS), clock.now), now: clock.now}
	stop := r.follow(t, auth.Limits{})
	key, token, err := r.keys.Create(t.Context(), auth.Key{Project: "acme", Role: auth.Reader, Limits: auth.Limits{Daily: 5}})
	if err != nil {
		t.Fatal(err)
	}
	r.until(t, token, nil) // one request
	clock.add(time.Second)
	r.until(t, token, nil)
	r.until(t, token, nil)
	stop()
	all, err := r.keys.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d keys, %v", len(all), err)
	}
	if u := all[0].Use; all[0].ID != key.ID || u.Total != 3 || u.Today != 3 || !u.Last.Equal(clock.now()) {
		t.Errorf("used %+v", u)
	}
	r.follow(t, auth.Limits{})
	r.until(t, token, nil)
	r.until(t, token, nil)
	_, _, err = r.ring.Admit(token)
	var excess *auth.ExcessError
	if !errors.As(err, &excess) || excess.Bound != "daily" || excess.After != 12*time.Hour-time.Second {
		t.Errorf("sixth request of a day: %v %+v", err, excess)
	}
	clock.add(excess.After)
	r.until(t, token, nil)
}

// A key whose use cannot be written does not keep the use of the others from it.
func TestUseOfOthersIsWritten(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	r := &rig{js: env.JS, keys: auth.NewKeys(bucket.New(env.JS), time.Now), now: time.Now}
	stop := r.follow(t, auth.Limits{})
	broken, _ := r.create(t, writer)
	for range 8 {
		r.create(t, writer)
	}
	if _, err := r.js.Publish(t.Context(), topology.SubjectKeys+"use."+broken.ID, []byte("no JSON")); err != nil {
		t.Fatal(err)
	}
	stop()
	all, err := r.keys.List(t.Context())
	if err != nil || len(all) != 9 {
		t.Fatalf("%d keys, %v", len(all), err)
	}
	for _, k := range all {
		if (k.Use.Total == 0) != (k.ID == broken.ID) {
			t.Errorf("key %s of which %s is broken: %+v", k.ID, broken.ID, k.Use)
		}
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	clock := newClock()
	r := start(t, auth.Limits{Rate: 2}, clock.now)
	_, token := r.create(t, writer) // the first of two
	r.until(t, token, nil)
	_, _, err := r.ring.Admit(token)
	var excess *auth.ExcessError
	if !errors.As(err, &excess) || excess.Bound != "rate" || excess.After != 500*time.Millisecond {
		t.Fatalf("third request at once: %v", err)
	}
	clock.add(excess.After)
	r.until(t, token, nil)
}

// A broker that restarts keeps the ring's answers, and brings the changes later.
func TestRingOutlivesTheBroker(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	r := &rig{js: env.JS, keys: auth.NewKeys(bucket.New(env.JS), time.Now), now: time.Now}
	r.follow(t, auth.Limits{})
	key, token := r.create(t, writer)
	env.Restart(t)
	r.until(t, token, nil)
	if _, err := r.keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	r.until(t, token, auth.ErrRevoked)
}

// TestP6RevokedKeyEndsRequestsUnderWay: an answer that goes on for as long as it is
// read must not outlive its key.
func TestP6RevokedKeyEndsRequestsUnderWay(t *testing.T) {
	t.Parallel()
	r := start(t, auth.Limits{}, time.Now)
	key, token := r.create(t, writer)
	_, other := r.create(t, writer)
	begun, ended := make(chan struct{}), make(chan struct{})
	gate := &auth.Gate{Ring: r.ring, Mode: auth.Required, Log: quiet}
	handler := gate.Handler(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		begun <- struct{}{}
		<-q.Context().Done()
		ended <- struct{}{}
	}))
	serve := func(ctx context.Context, token string) {
		req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		req.Header.Set("X-API-Key", token)
		handler.ServeHTTP(httptest.NewRecorder(), req)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go serve(t.Context(), token)
	go serve(ctx, other)
	<-begun
	<-begun
	if _, err := r.keys.Revoke(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	<-ended
	r.until(t, token, auth.ErrRevoked)
	select {
	case <-ended:
		t.Error("the request of another key ended, too")
	default:
	}
	cancel()
	<-ended
}

// TestP6LostKeysLetNobodyIn: a bucket that loses its keys, or an entry that cannot be
// read, must not let in callers that need a key.
func TestP6LostKeysLetNobodyIn(t *testing.T) {
	t.Parallel()
	r := start(t, auth.Limits{}, time.Now)
	key, token := r.create(t, writer)
	_, second := r.create(t, writer)
	if _, err := r.js.Publish(t.Context(), topology.SubjectKeys+"key."+key.ID, nil); err != nil { // as a delete of the bucket
		t.Fatal(err)
	}
	r.until(t, token, auth.ErrUnknown)
	stream, err := r.js.Stream(t.Context(), topology.StreamKeys)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	if err := r.js.DeleteStream(t.Context(), topology.StreamKeys); err != nil {
		t.Fatal(err)
	}
	if _, err := r.js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	r.until(t, second, auth.ErrUnknown)
	if !(&auth.Gate{Ring: r.ring, Mode: auth.Auto}).Requires() {
		t.Error("callers without a key are let in")
	}
}

func TestKeysThatNobodyCouldUse(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]auth.Key{
		"no role":               {Project: "acme"},
		"reader of everything":  {Role: auth.Reader},
		"operator of one user":  {Project: "acme", Role: auth.Operator, Users: []string{"nora"}},
		"users of everything":   {Role: auth.Admin, Users: []string{"nora"}},
		"negative rate":         {Project: "acme", Role: auth.Reader, Limits: auth.Limits{Rate: -1}},
		"a project of controls": {Project: "a\x00b", Role: auth.Reader},
	} {
		if k.Validate() == nil {
			t.Errorf("%s is valid", name)
		}
	}
}
