package memory

import "testing"

func TestWorkMerges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ known, newer, want string }{
		{"as a hydrologist at Fenwick Labs", "at Tarn Institute", "as a hydrologist at Tarn Institute"},
		{"in tech", "as a senior engineer at Fenwick", "as a senior engineer at Fenwick in tech"},
		{"as an engineer at Fenwick", "as a senior engineer", "as a senior engineer at Fenwick"},
		{"as a hydrologist at Fenwick Labs", "as a baker", "as a baker"},
		{"at Fenwick", "as a baker", "as a baker at Fenwick"},
		{"программист в компании Яндекс", "в компании Озон", "программист в компании Озон"},
		{"", "in tech", "in tech"},
	} {
		if got := MergeWork(ParseWork(c.known), ParseWork(c.newer)).String(); got != c.want {
			t.Errorf("MergeWork(%q, %q) = %q, want %q", c.known, c.newer, got, c.want)
		}
	}
}

func TestWorkEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		known, ended, want string
		changed            bool
	}{
		{"as a hydrologist at Fenwick Labs", "at Fenwick", "as a hydrologist", true},
		{"as a hydrologist at Fenwick Labs", "", "", true},
		{"at Fenwick Labs", "at Fenwick", "", true},
		{"at Fenwick Labs", "at Tarn", "at Fenwick Labs", false},
		{"", "", "", false},
	} {
		rest, changed := WithoutWork(ParseWork(c.known), ParseWork(c.ended))
		if rest.String() != c.want || changed != c.changed {
			t.Errorf("WithoutWork(%q, %q) = %q, %v, want %q, %v", c.known, c.ended, rest, changed, c.want, c.changed)
		}
	}
}

func TestWorkRoundTrips(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"as a cook", "at Fenwick", "in tech", "as a cook at Fenwick in tech", "гидролог в компании Fenwick Labs", "повар", "в сфере IT"} {
		if got := ParseWork(s).String(); got != s {
			t.Errorf("ParseWork(%q).String() = %q", s, got)
		}
	}
}
