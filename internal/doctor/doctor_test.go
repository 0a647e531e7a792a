package doctor

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClockBehindTheStreams(t *testing.T) {
	t.Parallel()
	e := &examination{}
	e.newest.Stream, e.newest.At = "EPISODES", time.Now().Add(time.Hour)
	if _, err := e.clock(); err == nil || !strings.Contains(err.Error(), "is 1h0m0s behind the newest message of EPISODES") {
		t.Errorf("%v", err)
	}
}
