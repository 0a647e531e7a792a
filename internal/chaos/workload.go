package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Size sets the number of messages and of kills. The same size draws the same
// workload.
type Size struct {
	Seed uint64 `json:"seed"`
	// Episodes counts different episodes. Repetitions are not counted.
	Episodes int `json:"episodes"`
	Users    int `json:"users"`
	Kills    int `json:"kills"`
	// Processes are how many there are to kill; 0 means 1.
	Processes int `json:"processes,omitempty"`
	// Every, in ns, is the time between two kills; the episodes are published over
	// the time of all kills. With 0, processes are killed at counts, and episodes are
	// published as fast as they are acknowledged. 1 ms at least.
	Every time.Duration `json:"every,omitempty"`
	// OneVoice gives each user one publisher. Several publishers each keep their own
	// order and interleave at random, and so do the facts that follow.
	OneVoice bool `json:"one_voice,omitempty"`
}

// span is the time over which the episodes are published; 0 is no pause.
func (s Size) span() time.Duration { return s.Every * time.Duration(s.Kills) }

// Validate names the first figure that cannot be used.
func (s Size) Validate() error {
	switch {
	case s.Users < 1:
		return errors.New("users: must be 1 or more")
	case s.Episodes < s.Users:
		return fmt.Errorf("episodes: %d are not enough for one of each of %d users", s.Episodes, s.Users)
	case s.Kills < 0 || s.Kills > s.Episodes:
		return fmt.Errorf("kills: %d is not between 0 and the number of episodes", s.Kills)
	case s.Processes < 0:
		return errors.New("processes: is negative")
	case s.Every != 0 && s.Every < time.Millisecond:
		return fmt.Errorf("every: %v is less than a millisecond", s.Every)
	}
	return nil
}

// Workload has the messages, their publishers and order, and the kills.
type Workload struct {
	Size   Size
	Users  []User
	Voices []Voice
	Kills  []Kill
}

// User is one person: all messages, and the facts that must be known in the end.
type User struct {
	Name     string
	Episodes []Episode
	Sessions []string
	Known    []Known
}

// scope is the fact scope.
func (u User) scope() scope.Scope {
	return scope.Scope{Project: scope.DefaultProject, User: u.Name, Agent: "assistant"}
}

// Episode is one message.
type Episode struct {
	ID      string
	Session string
	Role    events.Role
	Content string
	At      time.Time
	claim   claim
}

// Voice is one publisher of one user. It takes its steps in order, each after
// the acknowledgement of the one before.
type Voice struct {
	User  int
	Steps []Step
}

// Step publishes an episode, for the first time or again.
type Step struct {
	Episode int // of the user
	Again   Again
}

// Again says how a message is published that was published before.
type Again int

// The ways of publishing.
const (
	First  Again = iota
	AtOnce       // while the broker may still know the message's id
	Past         // when it has forgotten it
)

// dedupWindow is how long the broker knows a message's id, at most.
const dedupWindow = 100 * time.Millisecond

// Draw makes the workload of a size.
func Draw(size Size) (*Workload, error) {
	if err := size.Validate(); err != nil {
		return nil, fmt.Errorf("draw workload: %w", err)
	}
	w := &Workload{Size: size}
	for n := range size.Users {
		episodes := size.Episodes / size.Users
		if n < size.Episodes%size.Users {
			episodes++
		}
		// A random source per user: the messages do not depend on the number of users.
		random := rand.New(rand.NewPCG(size.Seed, uint64(n)+1))
		devices := 1
		if n%2 == 1 && episodes >= 4 && !size.OneVoice {
			devices = 2
		}
		user, voices := draw(n, episodes, devices, random)
		w.Users = append(w.Users, user)
		w.Voices = append(w.Voices, voices...)
	}
	w.Kills = drawKills(size, rand.New(rand.NewPCG(size.Seed, 0)))
	return w, nil
}

// draw makes one user: first what they tell, in the order in which it happened,
// then the order in which each of their devices publishes it.
func draw(n, episodes, devices int, random *rand.Rand) (User, []Voice) {
	s := newStory(fmt.Sprintf("user-%d", n), devices, random)
	for range episodes - 1 {
		s.next()
	}
	user := User{Name: s.user, Episodes: s.episodes, Known: s.known()}
	sessions := min(1+random.IntN(3), episodes)
	for k := range sessions {
		user.Sessions = append(user.Sessions, fmt.Sprintf("s%d", k+1))
	}
	user.Episodes[0].Session = user.Sessions[0]
	var voices []Voice
	for device := range devices {
		order := s.disturbed(device)
		for at, e := range order {
			user.Episodes[e].Session = user.Sessions[at*sessions/len(order)]
		}
		// Whichever device is first says hello; the other repeats it.
		voices = append(voices, Voice{User: n, Steps: repeated(append([]int{0}, order...), random)})
	}
	return user, voices
}

// repeated publishes episodes in order, some of them again.
func repeated(order []int, random *rand.Rand) []Step {
	var steps []Step
	for at, e := range order {
		steps = append(steps, Step{Episode: e})
		switch roll := random.IntN(100); {
		case roll < 6:
			steps = append(steps, Step{Episode: e, Again: AtOnce})
		case roll < 10:
			steps = append(steps, Step{Episode: order[random.IntN(at+1)], Again: Past})
		}
	}
	return steps
}

// message is an episode as it is published: the same bytes each time.
func (u User) message(n int) (*nats.Msg, error) {
	e := u.Episodes[n]
	body, err := json.Marshal(map[string]any{"role": e.Role, "content": e.Content, "timestamp": e.At})
	if err != nil {
		return nil, fmt.Errorf("encode episode %s: %w", e.ID, err)
	}
	msg := nats.NewMsg(events.EpisodeSubject(u.in(e.Session)))
	msg.Data = body
	msg.Header.Set(nats.MsgIdHdr, e.ID)
	return msg, nil
}

func (u User) in(session string) scope.Scope {
	s := u.scope()
	s.Session = session
	return s
}

// end is the message that ends a session.
func (u User) end(session string) (*nats.Msg, error) {
	last := u.Episodes[len(u.Episodes)-1]
	subject, head, body, err := events.Encode(events.Meta{ID: u.Name + "-" + session + "-end", Source: "chaos"},
		events.SessionEnded{Scope: u.in(session), Cause: events.EndExplicit, Timestamp: events.Timestamp{Time: last.At}})
	if err != nil {
		return nil, fmt.Errorf("encode the end of session %s: %w", session, err)
	}
	return &nats.Msg{Subject: subject, Header: head, Data: body}, nil
}

// Digest names a workload by its content, so that a record is not held against
// another one.
func (w *Workload) Digest() (string, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return "", fmt.Errorf("encode workload: %w", err)
	}
	return events.HashID(string(text)), nil
}
