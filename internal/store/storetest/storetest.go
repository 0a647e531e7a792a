// Package storetest is the suite that every backend of the memory store must
// pass: one file a topic, one call for all of them.
package storetest

import (
	"testing"
	"time"

	"palimpsest/internal/store"
)

// Options says what a backend cannot do. The zero value runs everything that
// needs no help.
type Options struct {
	// Skip maps a topic's name to the reason why the backend is excused from it.
	Skip map[string]string
	// Reopen closes the store and opens what it left behind. Nil skips the tests
	// of what outlives a process; Skip["Reopen"] must say why.
	Reopen func(t *testing.T, s store.Store) store.Store
	// Later lets the time pass for which the store keeps the vectors of a space that
	// is not served any more. Nil means that it keeps them for none.
	Later func(s store.Store)
	// PutBack opens an empty store that counts a fact as accessed at an instant where
	// it was created earlier; nil skips the test of that.
	PutBack func(t *testing.T, at time.Time) store.Store
	// Dimensions of the vectors the store was opened for; 0 means 16.
	Dimensions int
}

func (o Options) dimensions() int {
	if o.Dimensions == 0 {
		return 16
	}
	return o.Dimensions
}

// suite is what a topic is handed.
type suite struct {
	open func(t *testing.T) store.Store
	opts Options
}

// RunAll runs every topic against stores that open returns. Each call of open
// must return an empty store, and close it when the test ends.
func RunAll(t *testing.T, open func(t *testing.T) store.Store, opts Options) {
	t.Helper()
	s := suite{open: open, opts: opts}
	for _, topic := range []struct {
		name string
		run  func(t *testing.T, s suite)
	}{
		{"Episodes", testEpisodes},
		{"Ordinals", testOrdinals},
		{"Recent", testRecent},
		{"Sessions", testSessions},
		{"Schedule", testSchedule},
		{"Claims", testClaims},
		{"Cursors", testCursors},
		{"Apply", testApply},
		{"Versions", testVersions},
		{"Facts", testFacts},
		{"EarlierVersions", testEarlierVersions},
		{"Matching", testMatching},
		{"MatchingThen", testMatchingThen},
		{"Holds", testHolds},
		{"Decay", testDecay},
		{"SearchText", testSearchText},
		{"SearchVector", testSearchVector},
		{"Vectors", testVectors},
		{"VectorTurns", testTurns},
		{"VectorsRefused", testRefused},
		{"VectorSpaces", testSpaces},
		{"Requests", testRequests},
		{"Cache", testCache},
		{"Outcomes", testOutcomes},
		{"Export", testExport},
		{"Ledger", testLedger},
		{"Isolation", testIsolation},
		{"Concurrency", testConcurrency},
		{"Health", testHealth},
		{"Reopen", testReopen},
		{"Erasure", testErasure},
	} {
		t.Run(topic.name, func(t *testing.T) {
			if why := opts.Skip[topic.name]; why != "" {
				t.Skip(why)
			}
			t.Parallel()
			topic.run(t, s)
		})
	}
}
