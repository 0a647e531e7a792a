package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"palimpsest/pkg/events"
)

// claim is what an episode states, for the oracle.
type claim struct {
	predicate string // empty: nothing that is remembered
	object    string
	ends      bool
}

// The predicates that are spoken of. Of lives_in and phone the last word holds;
// likes and has_pet are sets.
const (
	livesIn = "lives_in"
	phone   = "phone"
	likes   = "likes"
	hasPet  = "has_pet"
)

func single(predicate string) bool { return predicate == livesIn || predicate == phone }

// storyBegins is when the first thing happened; one follows each minute.
var storyBegins = time.Date(2025, time.March, 1, 9, 0, 0, 0, time.UTC)

// story is one user's telling under way.
type story struct {
	user     string
	random   *rand.Rand
	names    *names
	episodes []Episode
	devices  [][]int        // per device, its steps in the order in which they happened
	liked    [][]int        // per device, the likes that it stated and did not retract
	bound    []bool         // per episode: others speak of the same thing, so that order matters
	changed  map[string]int // per predicate of which the last word holds: how often
}

// maxChanges is how often one thing changes, well below what the product takes
// for a client in a loop.
const maxChanges = 12

func newStory(user string, devices int, random *rand.Rand) *story {
	s := &story{
		user: user, random: random, names: newNames(random),
		devices: make([][]int, devices), liked: make([][]int, devices), changed: map[string]int{},
	}
	s.say("hello", "Hello.", claim{})
	return s
}

// say adds an episode and returns its place.
func (s *story) say(id, content string, c claim) int {
	n := len(s.episodes)
	s.episodes = append(s.episodes, Episode{
		ID: s.user + "-" + id, Role: events.RoleUser, Content: content,
		At: storyBegins.Add(time.Duration(n) * time.Minute), claim: c,
	})
	s.bound = append(s.bound, false)
	return n
}

// next lets something happen, and one of the devices tell it.
func (s *story) next() {
	device := s.random.IntN(len(s.devices))
	n := s.say(fmt.Sprintf("%d", len(s.episodes)), "", claim{})
	e := &s.episodes[n]
	switch roll := s.random.IntN(100); {
	case roll < 12 && s.changed[livesIn] < maxChanges:
		e.Content, e.claim = s.move()
	case roll < 18 && s.changed[phone] < maxChanges:
		e.Content, e.claim = s.ring()
	case roll < 24:
		name := s.names.draw()
		e.Content, e.claim = "I have a dog named "+name+".", claim{predicate: hasPet, object: "dog named " + name}
	case roll < 50:
		thing := strings.ToLower(s.names.draw())
		e.Content, e.claim = "I like "+thing+".", claim{predicate: likes, object: thing}
		s.liked[device] = append(s.liked[device], n)
	case roll < 58:
		s.again(device, n)
	case roll < 66:
		s.takeBack(device, n)
	default:
		e.Role, e.Content = s.chatter()
	}
	s.devices[device] = append(s.devices[device], n)
}

func (s *story) move() (string, claim) {
	city, verb := s.names.draw(), "I moved to "
	if s.changed[livesIn] == 0 {
		verb = "I live in "
	}
	s.changed[livesIn]++
	return verb + city + ".", claim{predicate: livesIn, object: city}
}

func (s *story) ring() (string, claim) {
	text := "My new number ends in "
	if s.changed[phone] == 0 {
		text = "My phone number ends in "
	}
	s.changed[phone]++
	number := fmt.Sprintf("%d", 1000+len(s.episodes)%9000)
	return text + number + ".", claim{predicate: phone, object: "ends in " + number}
}

// again repeats a statement of the device that something is liked.
func (s *story) again(device, n int) {
	e := &s.episodes[n]
	known := s.liked[device]
	if len(known) == 0 {
		e.Role, e.Content = s.chatter()
		return
	}
	first := known[s.random.IntN(len(known))]
	e.Content, e.claim = s.episodes[first].Content, s.episodes[first].claim
	s.bound[first], s.bound[n] = true, true
}

// takeBack states that something is no longer liked, after the device stated that it is.
func (s *story) takeBack(device, n int) {
	e := &s.episodes[n]
	known := s.liked[device]
	if len(known) == 0 {
		e.Role, e.Content = s.chatter()
		return
	}
	at := s.random.IntN(len(known))
	first := known[at]
	s.liked[device] = slices.Delete(known, at, at+1)
	e.claim = s.episodes[first].claim
	e.claim.ends = true
	e.Content = "I no longer like " + e.claim.object + "."
	s.bound[first], s.bound[n] = true, true
}

// chatter is what nothing is remembered of.
func (s *story) chatter() (events.Role, string) {
	lines := []struct {
		role events.Role
		text string
	}{
		{events.RoleUser, "What is the weather like?"},
		{events.RoleUser, "Thanks, that helps."},
		{events.RoleUser, "ok"},
		{events.RoleAssistant, "Is there anything else?"},
		{events.RoleUser, "Can you check that once more?"},
	}
	l := lines[s.random.IntN(len(lines))]
	return l.role, l.text
}

// disturbed is the order in which a device publishes: some of it late, some
// swapped with its neighbour. What others speak of as well stays in its place
// among them; of what changes, the time of the event tells which came last.
func (s *story) disturbed(device int) []int {
	order := slices.Clone(s.devices[device])
	for at := range order {
		if s.bound[order[at]] {
			continue
		}
		to := at
		switch roll := s.random.IntN(100); {
		case roll < 4:
			to = at + 5 + s.random.IntN(15)
		case roll < 8:
			to = at + 1
		}
		if to > at && to < len(order) {
			late := order[at]
			copy(order[at:to], order[at+1:to+1])
			order[to] = late
		}
	}
	return order
}

// names draws invented names, each once, so that a statement about one concerns
// no other.
type names struct {
	random *rand.Rand
	used   map[string]bool
}

func newNames(random *rand.Rand) *names { return &names{random: random, used: map[string]bool{}} }

func (n *names) draw() string {
	begins := []string{"Bal", "Dor", "Fen", "Gal", "Hol", "Kel", "Lum", "Mar", "Nov", "Pel", "Quor", "Ros", "Sel", "Tur", "Vor", "Zan"}
	middles := []string{"ba", "do", "ga", "ko", "la", "mi", "no", "pu", "ra", "so", "ta", "vu"}
	ends := []string{"dak", "fax", "gol", "kim", "lok", "mur", "nax", "pod", "rok", "tun", "vik", "zub"}
	name := begins[n.random.IntN(len(begins))]
	for {
		name += middles[n.random.IntN(len(middles))]
		if whole := name + ends[n.random.IntN(len(ends))]; !n.used[whole] {
			n.used[whole] = true
			return whole
		}
	}
}

// Known is a fact that must hold of a user in the end, once.
type Known struct {
	Predicate, Object string
	// Last is the statement that made it so. Of a set, Sources are all the
	// statements of it, and the fact must rest on exactly these; of what changes,
	// they are the statements of any value, some of which it may rest on.
	Last    string
	Sources []string
}

// known returns the facts that a story leaves: of several values the last, and no
// retracted ones.
func (s *story) known() []Known {
	var order []string
	facts := map[string]*Known{}
	for _, e := range s.episodes {
		c := e.claim
		if c.predicate == "" {
			continue
		}
		key := c.predicate
		if !single(c.predicate) {
			key += " " + c.object
		}
		if c.ends {
			delete(facts, key)
			continue
		}
		f := facts[key]
		if f == nil {
			f = &Known{Predicate: c.predicate}
			facts[key] = f
			order = append(order, key)
		}
		f.Object, f.Last = c.object, e.ID
		f.Sources = append(f.Sources, e.ID)
	}
	out := make([]Known, 0, len(order))
	for _, key := range order {
		if f := facts[key]; f != nil {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b Known) int {
		return cmp.Or(cmp.Compare(a.Predicate, b.Predicate), cmp.Compare(a.Object, b.Object))
	})
	return out
}
