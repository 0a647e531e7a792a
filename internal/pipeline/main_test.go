package pipeline

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(logEnv) != "" {
		logChild() // does not return
	}
	if os.Getenv(crashEnv) != "" {
		crashChild() // does not return
	}
	goleak.VerifyTestMain(m)
}
