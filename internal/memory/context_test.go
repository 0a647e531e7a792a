package memory

import "testing"

func TestBlankContext(t *testing.T) {
	t.Parallel()
	block := ContextOpen + "likes tea" + ContextClose
	for _, c := range []struct{ in, before, after string }{
		{"plain", "plain", ""},
		{"a" + block + "b", "a", "b"},
		{"a" + block + "b" + block, "a", ""},
		{"a" + ContextOpen + "never closed", "a", ""},
	} {
		got := BlankContext(c.in)
		if len(got) != len(c.in) {
			t.Errorf("BlankContext(%q) has %d bytes, want %d", c.in, len(got), len(c.in))
		}
		if got[:len(c.before)] != c.before || got[len(got)-len(c.after):] != c.after {
			t.Errorf("BlankContext(%q) = %q", c.in, got)
		}
	}
}
