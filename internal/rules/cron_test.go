package rules

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func mustParse(t testing.TB, expr, zone string) *Schedule {
	t.Helper()
	s, err := ParseCron(expr, location(t, zone))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFires walks schedules over the days on which Berlin changes its clocks:
// 29 March 2026, 02:00 → 03:00, and 25 October 2026, 03:00 → 02:00.
func TestFires(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		expr, zone, from string
		want             []string // UTC
	}{
		"utc":              {"0 3 * * *", "UTC", "2026-03-01T03:00:00Z", []string{"2026-03-02T03:00:00Z", "2026-03-03T03:00:00Z"}},
		"spring, at 03:00": {"0 3 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", []string{"2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		"spring, skipped":  {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"autumn, twice":    {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"autumn, at 03:00": {"0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T02:00:00Z", "2026-10-26T02:00:00Z"}},
		"half an hour":     {"15 2 * * *", "Australia/Lord_Howe", "2026-10-02T16:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		"leap day":         {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"weekdays":         {"0 9 * * MON-FRI", "UTC", "2026-03-06T10:00:00Z", []string{"2026-03-09T09:00:00Z"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, tt.expr, tt.zone)
			at, err := time.Parse(time.RFC3339, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				at = s.After(at)
				if got := at.Format(time.RFC3339); got != want {
					t.Fatalf("fires %s, want %s", got, want)
				}
				if got := s.Last(at.Add(time.Second)); !got.Equal(at) {
					t.Errorf("last before a second later is %s, want %s", got, at)
				}
			}
		})
	}
}

func TestCronRefusals(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"", "* * * *", "@daily", "61 * * * *", "0 0 31 2 *", "TZ=Europe/Berlin 0 3 * * *", "CRON_TZ=x", "TZ=", ", * * * *", "1,,2 * * * *", "* 3, * * *"} {
		if _, err := ParseCron(expr, nil); err == nil {
			t.Errorf("%q is accepted", expr)
		}
	}
}

func FuzzParseCron(f *testing.F) {
	for _, seed := range []string{"0 3 * * *", "*/5 1-4,7 * JAN SUN", "TZ=x", "? ? ? ? ?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		s, err := ParseCron(expr, nil)
		if err != nil {
			return
		}
		if at := s.After(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)); !at.IsZero() && !at.After(time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("%q fires at %s, after %s", expr, at, time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC))
		}
	})
}

// TestDailyFiresOnceADay: in any zone and year, a daily rule fires once on each
// local day, later than the fire before.
func TestDailyFiresOnceADay(t *testing.T) {
	t.Parallel()
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Gaza", "Africa/Casablanca", "UTC"}
	rapid.Check(t, func(rt *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(rt, "zone")
		hour, minute := rapid.IntRange(0, 23).Draw(rt, "hour"), rapid.IntRange(0, 59).Draw(rt, "minute")
		s := mustParse(t, time.Date(0, 1, 1, hour, minute, 0, 0, time.UTC).Format("4 15 * * *"), zone)
		at := time.Date(rapid.IntRange(2000, 2037).Draw(rt, "year"), time.Month(rapid.IntRange(1, 12).Draw(rt, "month")), 1, 0, 0, 0, 0, time.UTC)
		at = s.After(at)
		for range 40 {
			next := s.After(at)
			if gap := next.Sub(at); gap < 22*time.Hour || gap > 26*time.Hour {
				rt.Fatalf("%02d:%02d in %s: %s, then %s", hour, minute, zone, at, next)
			}
			if got := s.Last(next.Add(-time.Second)); !got.Equal(at) {
				rt.Fatalf("last before %s is %s, want %s", next, got, at)
			}
			at = next
		}
	})
}
