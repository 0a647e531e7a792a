package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"palimpsest/internal/doctor"
)

// TestDoctor: a line for each check, and an exit code that says whether all hold.
func TestDoctor(t *testing.T) {
	t.Parallel()
	args := []string{"--server", "127.0.0.1:1", "doctor", "--data", t.TempDir()}
	code, out, complaint := call(t, args...)
	if code != exitError || complaint != "palimpsest: 1 of 11 checks failed\n" || strings.Count(out, "\n") != 11 {
		t.Errorf("code %d, %q: %s", code, complaint, out)
	}
	if !strings.Contains(out, "FAIL  http     http://127.0.0.1:1: connection refused\n") || strings.Count(out, "ok    ") != 10 {
		t.Errorf("%s", out)
	}
	_, out, _ = call(t, append([]string{"--json"}, args...)...)
	var found []doctor.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 11 || found[0].Check != "version" {
		t.Errorf("%v: %s", err, out)
	}
}
