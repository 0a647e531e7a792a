package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string) *Book {
	t.Helper()
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// place is a keeper in memory.
type place struct {
	users []string
	fails error
	times int // how often it was asked to erase
}

func (p *place) eraser(name string) Eraser {
	return Eraser{
		Name: name,
		Erase: func(_ context.Context, _ string, whom memory.Whom) (out Removed, _ error) {
			p.times++
			if p.fails != nil {
				return out, p.fails
			}
			out.Counts = map[string]uint64{}
			var left []string
			for _, u := range p.users {
				if whom.Owns(scope.Scope{Project: "p", User: u}) {
					out.Counts["users"]++
				} else {
					left = append(left, u)
				}
			}
			p.users = left
			return out, nil
		},
		Scan: func(_ context.Context, _ string, whom memory.Whom) (n uint64, _ error) {
			for _, u := range p.users {
				if whom.Owns(scope.Scope{Project: "p", User: u}) {
					n++
				}
			}
			return n, nil
		},
	}
}

func work(until uint64, erasers ...Eraser) Work {
	return Work{
		Erasers: erasers, Now: func() time.Time { return noon }, Unreachable: []string{"backups"},
		Until: func(context.Context) (uint64, error) { return until, nil },
	}
}

func TestJobsGoOnWhereTheyFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	first, second := &place{users: []string{"ana", "bob"}}, &place{users: []string{"bob"}, fails: errors.New("away")}
	asked, err := b.Ask("p", "bob", "", noon)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.Ask("p", "bob", "", noon); err != nil || again.ID != asked.ID {
		t.Errorf("asked twice: %+v, %v", again, err)
	}
	if _, err := b.Run(t.Context(), work(7, first.eraser("a"), second.eraser("b"))); !errors.Is(err, second.fails) {
		t.Fatalf("run: %v", err)
	}
	second.fails = nil
	b = open(t, dir) // as another process
	done, err := b.Run(t.Context(), work(9, first.eraser("a"), second.eraser("b")))
	if err != nil || len(done) != 1 {
		t.Fatalf("run: %+v, %v", done, err)
	}
	r := done[0]
	if first.times != 1 || second.times != 2 || len(first.users) != 1 || len(second.users) != 0 {
		t.Errorf("erased %d and %d times, left %v and %v", first.times, second.times, first.users, second.users)
	}
	if r.Until != 7 || r.Incarnation != 1 || r.Places[0].Removed["users"] != 1 || r.Places[1].Removed["users"] != 1 {
		t.Errorf("receipt %+v", r)
	}
	if len(b.Pending()) > 0 {
		t.Errorf("pending %+v", b.Pending())
	}
	if r.NothingFound {
		t.Error("the receipt says that nothing was found")
	}
	b = open(t, dir)
	for user, want := range map[string]uint64{"bob": 1, "ana": 0, "": 0} {
		if got := b.Born("p", user); got != want {
			t.Errorf("%q is born with incarnation %d, want %d", user, got, want)
		}
	}
	if !b.Erased("p", "bob", 7, noon) || b.Erased("p", "bob", 8, noon) || b.Erased("p", "bob", 0, noon) ||
		b.Erased("q", "bob", 7, noon) || b.Erased("p", "ana", 7, noon) || b.Erased("p", "bob", 7, noon.Add(time.Second)) {
		t.Error("another episode counts as erased")
	}
	if again, err := b.Ask("p", "bob", "", noon); err != nil || again.Incarnation != 2 {
		t.Errorf("asked behind it: %+v, %v", again, err)
	}
}

func TestWhatIsLeftIsErasedAgain(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	if _, err := b.Ask("p", "bob", "", noon); err != nil {
		t.Fatal(err)
	}
	p := &place{users: []string{"bob"}}
	k := p.eraser("a")
	erase := k.Erase
	k.Erase = func(context.Context, string, memory.Whom) (Removed, error) { return Removed{}, nil }
	if _, err := b.Run(t.Context(), work(1, k)); err == nil || !strings.Contains(err.Error(), "1 are left") {
		t.Fatalf("run: %v", err)
	}
	k.Erase = erase
	if done, err := b.Run(t.Context(), work(1, k)); err != nil || len(done) != 1 || len(done[0].Places) != 1 {
		t.Errorf("run: %+v, %v", done, err)
	}
}

func TestKeyMakesOneJob(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	first, err := b.Ask("p", "bob", "k", noon)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{users: []string{"bob"}}
	if _, err := b.Run(t.Context(), work(1, p.eraser("a"))); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Get(first.ID); err != nil || r.NothingFound {
		t.Errorf("the receipt is %+v, %v", r, err)
	}
	if again, err := b.Ask("p", "bob", "k", noon); err != nil || again.ID != first.ID || !again.Done() {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if _, err := b.Ask("p", "ana", "k", noon); !errors.Is(err, ErrOther) {
		t.Errorf("for another user: %v", err)
	}
	if _, err := b.Ask("p", "bbo", "", noon); err != nil {
		t.Fatal(err)
	}
	if done, err := b.Run(t.Context(), work(1, p.eraser("a"))); err != nil || !done[0].NothingFound {
		t.Errorf("of a misspelt user: %+v, %v", done, err)
	}
	if other, err := b.Ask("q", "ana", "k", noon); err != nil || other.ID == first.ID {
		t.Errorf("in another project: %+v, %v", other, err)
	}
}

func receiptOf(t *testing.T, b *Book) Receipt {
	t.Helper()
	if _, err := b.Ask("p", "bob", "", noon); err != nil {
		t.Fatal(err)
	}
	p := &place{users: []string{"bob"}}
	done, err := b.Run(t.Context(), work(1, p.eraser("a")))
	if err != nil {
		t.Fatal(err)
	}
	return done[0]
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	r := receiptOf(t, b)
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Verify(raw, b.Public())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(raw), "bob") {
		t.Errorf("it names the user: %s", raw)
	}
	pending := r
	pending.FinishedAt = nil
	if err := b.key.seal(&pending); err != nil {
		t.Fatal(err)
	}
	unfinished, err := json.Marshal(pending)
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string]string{
		"a count":      strings.Replace(string(raw), `"users": 1`, `"users": 2`, 1),
		"the user":     strings.Replace(string(raw), r.Whom[:8], "00000000", 1),
		"no key":       strings.Replace(string(raw), r.PublicKey, "", 1),
		"no signature": strings.Replace(string(raw), r.Signature, "", 1),
		"unfinished":   string(unfinished),
	} {
		if _, err := Verify([]byte(changed), ""); !errors.Is(err, ErrReceipt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Verify([]byte(`{"more":1}`), ""); err == nil {
		t.Error("an unknown member is accepted")
	}
	other := open(t, t.TempDir())
	if _, err := Verify(raw, other.Public()); !errors.Is(err, ErrReceipt) {
		t.Errorf("by another key: %v", err)
	}
	if _, err := other.AskAgain(r, noon); !errors.Is(err, ErrReceipt) {
		t.Errorf("in another directory: %v", err)
	}
}

func TestKeyIsPrivateAndKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	public := open(t, dir).Public()
	info, err := os.Stat(filepath.Join(dir, KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v: %v", info.Mode(), err)
	}
	if again := open(t, dir).Public(); again != public {
		t.Errorf("the key became another: %s, then %s", public, again)
	}
	if err := os.WriteFile(filepath.Join(dir, KeyFile), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a broken key is accepted")
	}
}
