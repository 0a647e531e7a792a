package chaos

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"palimpsest/pkg/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func drawn(t testing.TB, size Size) *Workload {
	t.Helper()
	w, err := Draw(size)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// bytesOf is all that is published, in the order of each voice.
func bytesOf(t testing.TB, w *Workload) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, v := range w.Voices {
		for _, s := range v.Steps {
			msg, err := w.Users[v.User].message(s.Episode)
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(msg.Subject + " " + msg.Header.Get(nats.MsgIdHdr) + " ")
			out.Write(msg.Data)
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

func TestTheSameSeedDrawsTheSameBytes(t *testing.T) {
	t.Parallel()
	size := Size{Seed: 42, Episodes: 500, Users: 7, Kills: 9}
	one, two := drawn(t, size), drawn(t, size)
	if !bytes.Equal(bytesOf(t, one), bytesOf(t, two)) {
		t.Error("two draws of one seed publish other bytes")
	}
	if diff := cmp.Diff(one.Kills, two.Kills); diff != "" {
		t.Errorf("two draws of one seed kill at other counts:\n%s", diff)
	}
	size.Seed = 43
	if bytes.Equal(bytesOf(t, one), bytesOf(t, drawn(t, size))) {
		t.Error("another seed publishes the same bytes")
	}
}

// TestAWorkloadHasAllThatIsHard: repetitions, late and swapped messages, several
// sessions, two devices in one of them, things stated twice and taken back.
func TestAWorkloadHasAllThatIsHard(t *testing.T) {
	t.Parallel()
	w := drawn(t, Size{Seed: 1, Episodes: 4000, Users: 40, Kills: 8})
	seen := map[string]bool{}
	for _, v := range w.Voices {
		u := w.Users[v.User]
		for n, s := range v.Steps {
			switch s.Again {
			case AtOnce:
				seen["repeated at once"] = true
			case Past:
				seen["repeated later"] = true
			}
			if n > 0 && s.Again == First && s.Episode < v.Steps[n-1].Episode {
				seen["late"] = true
			}
			seen["ended "+u.Episodes[s.Episode].claim.predicate] = seen["ended "+likes] || u.Episodes[s.Episode].claim.ends
		}
		if len(u.Sessions) > 1 {
			seen["sessions"] = true
		}
	}
	for n := range w.Voices[1:] {
		if w.Voices[n].User == w.Voices[n+1].User {
			seen["two devices"] = true
		}
	}
	for _, k := range w.Kills {
		seen[string(k.Counter)] = true
	}
	for _, want := range []string{"repeated at once", "repeated later", "late", "ended " + likes, "sessions", "two devices", string(Acknowledged), string(Consolidated)} {
		if !seen[want] {
			t.Errorf("nothing is %s", want)
		}
	}
}

// TestEveryEpisodeIsSaidFirst: each episode by one voice (the greeting by all),
// before it is repeated, and no publisher takes back a statement that it has not made.
func TestEveryEpisodeIsSaidFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		users := rapid.IntRange(1, 5).Draw(rt, "users")
		episodes := users + rapid.IntRange(0, 300).Draw(rt, "more")
		w := drawn(t, Size{
			Seed: rapid.Uint64().Draw(rt, "seed"), Users: users, Episodes: episodes,
			Kills: rapid.IntRange(0, min(5, episodes)).Draw(rt, "kills"),
		})
		total := 0
		for _, u := range w.Users {
			total += len(u.Episodes)
		}
		if total != w.Size.Episodes {
			rt.Fatalf("%d episodes, want %d", total, w.Size.Episodes)
		}
		first := map[string]int{}
		for _, v := range w.Voices {
			u, published, liked := w.Users[v.User], map[int]bool{}, map[string]bool{}
			for _, s := range v.Steps {
				if (s.Again == First) == published[s.Episode] {
					rt.Fatalf("%s: step %+v, published before: %v", u.Name, s, published[s.Episode])
				}
				if s.Again != First {
					continue
				}
				published[s.Episode] = true
				e := u.Episodes[s.Episode]
				first[e.ID]++
				if e.Session == "" || e.Content == "" {
					rt.Fatalf("%+v", e)
				}
				if e.claim.ends && !liked[e.claim.object] {
					rt.Fatalf("%s takes back %s, which it did not say", e.ID, e.claim.object)
				}
				liked[e.claim.object] = e.claim.predicate == likes && !e.claim.ends
			}
		}
		for id, n := range first {
			if n != 1 && !strings.HasSuffix(id, "-hello") {
				rt.Fatalf("%s is published first by %d voices", id, n)
			}
		}
		if len(first) != total {
			rt.Fatalf("%d of %d episodes are published", len(first), total)
		}
		for _, k := range w.Kills {
			if k.At < 1 || k.At > w.Size.Episodes {
				rt.Fatalf("a kill at %d is never reached", k.At)
			}
		}
	})
}

func TestOracle(t *testing.T) {
	t.Parallel()
	var s story
	tell := func(id string, c claim) {
		s.episodes = append(s.episodes, Episode{ID: id, Role: events.RoleUser, claim: c})
	}
	tell("1", claim{predicate: livesIn, object: "Oslo"})
	tell("2", claim{predicate: likes, object: "tea"})
	tell("3", claim{})
	tell("4", claim{predicate: likes, object: "chess"})
	tell("5", claim{predicate: livesIn, object: "Bergen"})
	tell("6", claim{predicate: likes, object: "tea"})
	tell("7", claim{predicate: likes, object: "chess", ends: true})
	want := []Known{
		{Predicate: likes, Object: "tea", Last: "6", Sources: []string{"2", "6"}},
		{Predicate: livesIn, Object: "Bergen", Last: "5", Sources: []string{"1", "5"}},
	}
	if diff := cmp.Diff(want, s.known()); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		of      Known
		sources []string
		want    bool
	}{
		{want[0], []string{"6", "2"}, true},
		{want[0], []string{"6"}, false},
		{want[0], []string{"2", "6", "4"}, false},
		{want[1], []string{"5"}, true},
		{want[1], []string{"1", "5"}, true},
		{want[1], []string{"1"}, false},
	} {
		if got := rests(tc.sources, tc.of); got != tc.want {
			t.Errorf("%s may rest on %v: %v", tc.of.Object, tc.sources, got)
		}
	}
}

func TestDueKills(t *testing.T) {
	t.Parallel()
	all := []Kill{
		{Counter: Acknowledged, At: 3}, {Counter: Acknowledged, At: 3}, {Counter: Acknowledged, At: 9}, {Counter: Consolidated, At: 1},
	}
	left, reached := due(all, Acknowledged, 5)
	if diff := cmp.Diff(all[2:], left); diff != "" {
		t.Errorf("left:\n%s", diff)
	}
	if diff := cmp.Diff(all[:2], reached); diff != "" {
		t.Errorf("reached:\n%s", diff)
	}
}

// TestKillsByTheClock: one each time, of any process, while all is being published.
func TestKillsByTheClock(t *testing.T) {
	t.Parallel()
	w := drawn(t, Size{Seed: 1, Episodes: 100, Users: 5, Kills: 60, Processes: 12, Every: time.Second})
	hit := map[int]bool{}
	for n, k := range w.Kills {
		if k.Counter != Elapsed || k.At != (n+1)*1000 {
			t.Errorf("kill %d: %+v", n, k)
		}
		hit[k.Process] = true
	}
	if len(w.Kills) != 60 || len(hit) != 12 {
		t.Errorf("%d kills of %d processes", len(w.Kills), len(hit))
	}
	p := newPublishers(w, nil)
	p.begun = storyBegins
	for n := range 100 {
		if when := p.when(Step{}, time.Time{}); when != storyBegins.Add(time.Duration(n)*600*time.Millisecond) {
			t.Fatalf("episode %d is published at %v", n, when)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]Size{
		"no users": {Episodes: 1}, "too few episodes": {Episodes: 2, Users: 3}, "kills": {Episodes: 1, Users: 1, Kills: -1},
		"processes": {Episodes: 1, Users: 1, Processes: -1}, "a short clock": {Episodes: 1, Users: 1, Every: 1},
	} {
		if _, err := Draw(size); err == nil {
			t.Errorf("%s: drawn", name)
		}
	}
	if voices := drawn(t, Size{Episodes: 90, Users: 9, OneVoice: true}).Voices; len(voices) != 9 {
		t.Errorf("9 users speak with %d voices", len(voices))
	}
	small := drawn(t, Size{Episodes: 1, Users: 1})
	if got := small.Voices; len(got) != 1 || !slices.Equal(got[0].Steps[:1], []Step{{Episode: 0}}) {
		t.Errorf("%+v", got)
	}
}
