package decidetest

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/pkg/events"
)

// churnRow is one behaviour of the breaker.
type churnRow struct {
	name string
	run  func(t *testing.T, m *mill)
}

// spin makes a fact change as often as it may.
func spin(m *mill) {
	m.t.Helper()
	for i := range 4 {
		m.hear(m.lives(fmt.Sprint("P", i)))
		m.pass(time.Minute)
	}
}

// trips are behaviours of candidates that the breaker holds, and of releases.
func trips() []churnRow {
	return []churnRow{
		{"only the newest is held", func(t *testing.T, m *mill) {
			spin(m)
			want(t, m.hear(m.lives("A")), "add churn")
			want(t, m.hear(m.lives("B"), m.lives("C")), "noop churn", "noop churn", "add churn")
			m.expect("P3", "C")
			if h := m.Held()[0]; h.Count != 3 || !h.Since.Before(h.HeldAt.Add(time.Second)) || h.FactID != m.Facts()[0].ID ||
				h.Rule != "turn" || !h.Due.Equal(start.Add(time.Hour+time.Minute)) {
				t.Errorf("held %+v", h)
			}
		}},
		{"in one batch", func(t *testing.T, m *mill) {
			var batch []events.Candidate
			for i := range 200 {
				batch = append(batch, m.lives(fmt.Sprint("P", i)))
			}
			deltas := m.hear(batch...)
			counts := map[string]int{}
			for _, d := range deltas {
				counts[string(d.Kind())+" "+string(d.Provenance().Reason)]++
			}
			if len(deltas) != 200 || counts["update contradiction"] != 3 || counts["noop churn"] != 195 || counts["add churn"] != 1 {
				t.Errorf("deltas: %v", counts)
			}
			m.expect("P3", "P199")
		}},
		{"released when there is room", func(t *testing.T, m *mill) {
			spin(m)
			m.hear(m.lives("A"))
			h := m.Held()[0]
			m.now = h.Due.Add(-time.Microsecond)
			want(t, m.release(h, events.OpReleaseDue, m.breaker), "add churn")
			m.now = *h.Due
			want(t, m.release(h, events.OpReleaseDue, m.breaker), "update contradiction")
			m.expect("A", "")
		}},
		{"released by somebody", func(t *testing.T, m *mill) {
			spin(m)
			m.hear(m.lives("A"))
			want(t, m.release(m.Held()[0], events.OpRelease, decide.Breaker{}), "update contradiction")
			m.expect("A", "")
		}},
		{"said again after an hour", func(t *testing.T, m *mill) {
			spin(m)
			m.pass(time.Hour)
			want(t, m.hear(m.lives("A")), "update contradiction")
		}},
		{"other facts change", func(t *testing.T, m *mill) {
			spin(m)
			want(t, m.hear(m.says("likes", "tea"), m.says("name", "Bo", one)), "add new", "add new")
		}},
		{"deleted and added again", func(t *testing.T, m *mill) {
			want(t, m.hear(m.says("likes", "tea")), "add new")
			for i := range 3 {
				m.pass(time.Minute)
				if i%2 == 0 {
					want(t, m.hear(m.says("likes", "tea", negated)), "delete negation")
				} else {
					want(t, m.hear(m.says("likes", "tea")), "add new")
				}
			}
			m.pass(time.Minute)
			want(t, m.hear(m.says("likes", "tea")), "add churn")
			m.pass(time.Minute)
			want(t, m.hear(m.says("likes", "cake")), "add new")
			m.expect("cake", "tea")
		}},
		{"rewritten by name", func(t *testing.T, m *mill) {
			m.hear(m.says("", ""))
			id := m.Facts()[0].ID
			rewrite := func(text string) events.Candidate {
				c := m.says("", "", intent("update", id))
				c.Text = text
				return c
			}
			for i := range 3 {
				m.pass(time.Minute)
				want(t, m.hear(rewrite(fmt.Sprint("Text ", i, "."))), "update requested")
			}
			m.pass(time.Minute)
			want(t, m.hear(rewrite("Text, the last.")), "add churn")
			m.pass(time.Minute)
			want(t, m.hear(m.says("", "", intent("delete", id))), "noop churn", "add churn")
		}},
		{"an import of years", func(t *testing.T, m *mill) {
			for i := range 30 {
				c := m.lives(fmt.Sprint("P", i))
				c.EventTime = start.AddDate(-3, i, 0)
				m.hear(c)
				m.pass(time.Second)
			}
			m.expect("P29", "")
			want(t, m.hear(m.lives("now")), "update contradiction")
		}},
		{"an import of an hour", func(t *testing.T, m *mill) {
			for i := range 30 {
				c := m.lives(fmt.Sprint("P", i))
				c.EventTime = start.AddDate(-3, 0, 0).Add(time.Duration(i) * time.Minute)
				m.hear(c)
				m.pass(time.Second)
			}
			m.expect("P3", "P29")
		}},
	}
}

// overtakes are behaviours of held candidates when later ones arrive.
func overtakes() []churnRow {
	return []churnRow{
		{"said before what is held", func(t *testing.T, m *mill) {
			spin(m)
			early := m.lives("early")
			m.pass(time.Minute)
			m.hear(m.lives("A"))
			want(t, m.hear(early), "noop churn")
			m.expect("P3", "A")
		}},
		{"back to what is known", func(t *testing.T, m *mill) {
			spin(m)
			m.hear(m.lives("A"))
			m.pass(time.Minute)
			want(t, m.hear(m.lives("P3")), "noop duplicate", "noop churn")
			m.expect("P3", "")
		}},
		{"changed while something is held", func(t *testing.T, m *mill) {
			spin(m)
			m.hear(m.lives("A"))
			m.pass(2 * time.Hour)
			want(t, m.hear(m.lives("B")), "update contradiction", "noop churn")
			m.expect("B", "")
		}},
		{"changed by what was said before", func(t *testing.T, m *mill) {
			spin(m)
			early := m.lives("early")
			m.pass(time.Minute)
			m.hear(m.lives("A"))
			m.pass(2 * time.Hour)
			want(t, m.hear(early), "update contradiction")
			m.sweep()
			m.expect("A", "")
		}},
		{"ended while it is held", func(t *testing.T, m *mill) {
			spin(m)
			m.hear(m.lives("A"))
			m.pass(2 * time.Hour)
			want(t, m.hear(m.says("lives_in", "", one, negated)), "delete negation", "noop churn")
			m.expect("", "")
		}},
		{"a loop that is read again", func(t *testing.T, m *mill) {
			spin(m)
			var batch []events.Candidate
			for i := range 50 {
				m.pass(time.Second)
				batch = append(batch, m.lives(fmt.Sprint("Q", i)))
			}
			m.hear(batch...)
			m.pass(2 * time.Hour)
			m.sweep()
			m.expect("Q49", "")
			for i := range batch {
				batch[i].ID = fmt.Sprint("sleep's ", i)
			}
			for i, d := range m.hear(batch...) {
				if d.Kind() != events.DeltaNoop {
					t.Errorf("delta %d: %s %s", i, d.Kind(), d.Provenance().Reason)
				}
			}
			m.expect("Q49", "")
		}},
		{"an import from its end", func(t *testing.T, m *mill) {
			for i := range 30 {
				c := m.lives(fmt.Sprint("P", i))
				c.EventTime = start.AddDate(0, -i, 0)
				m.hear(c)
			}
			if n := len(m.Facts()); n != 30 {
				t.Errorf("%d of 30 are known", n)
			}
			m.expect("P0", "")
		}},
		{"read again by another rule", func(t *testing.T, m *mill) {
			spin(m)
			c := m.lives("A")
			m.hear(c)
			c.ID = "sleep's"
			want(t, m.hear(c), "noop churn", "add churn")
			m.pass(2 * time.Hour)
			m.sweep()
			c.ID = "night's"
			want(t, m.hear(c), "noop duplicate")
			m.expect("A", "")
		}},
	}
}
