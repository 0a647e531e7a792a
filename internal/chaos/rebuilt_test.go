package chaos

import (
	"errors"
	"testing"
)

// TestVerdictRestsOnTheRebuild: it is good only where memory that is built anew
// has the same digest and every episode at the same place.
func TestVerdictRestsOnTheRebuild(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		digests Digests
		failed  error
		ok      bool
	}{
		"equal":               {Digests{Live: "a", Rebuilt: "a"}, nil, true},
		"another digest":      {Digests{Live: "a", Rebuilt: "b"}, nil, false},
		"no rebuild":          {Digests{}, errors.New("a gap"), false},
		"an unreadable store": {Digests{Rebuilt: "a"}, nil, false},
		"a moved episode":     {Digests{Live: "a", Rebuilt: "a", Moved: 1}, nil, false},
	} {
		var v Verdict
		v.Compare(c.digests, c.failed)
		if v.OK != c.ok || (len(v.Findings) == 0) != c.ok {
			t.Errorf("%s: OK %v, findings %v", name, v.OK, v.Findings)
		}
	}
}
