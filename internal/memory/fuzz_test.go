package memory

import "testing"

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"fact-1@1", "@1", "a@", "a@0", "a@01", "a@1@2", "a@-1", "é@18446744073709551615", "a@18446744073709551616", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseAddress(text)
		if err != nil {
			return
		}
		if back, err := ParseAddress(at.String()); err != nil || back != at {
			t.Fatalf("%q became %q became %v: %v", text, at, back, err)
		}
	})
}

// Composing what was parsed must come to rest, or a job that is said again would
// count as news for ever.
func FuzzParseWork(f *testing.F) {
	for _, s := range []string{
		"as a hydrologist at Fenwick Labs", "at Fenwick Labs in Bergen in hydrology", "инженер в компании Ромашка в сфере связи",
		"as as at at in in", " at ", "in", "", "as a nurse in  in at", "in in У",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, object string) {
		known := ParseWork(object).String()
		for range 3 {
			known = MergeWork(ParseWork(known), ParseWork(object)).String()
		}
		if again := MergeWork(ParseWork(known), ParseWork(object)).String(); again != known {
			t.Fatalf("%q: %q became %q", object, known, again)
		}
	})
}
