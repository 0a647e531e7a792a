package broker

import "testing"

func TestOlderServersAreTold(t *testing.T) {
	t.Parallel()
	for have, want := range map[string]bool{
		"2.11.9": true, "1.99.0": true, "2.12.0": false, "2.12.0-preview.1": false, "2.15.1": false, "3.0.0": false, "": false, "dev": false,
	} {
		if got := older(have, oldestServer); got != want {
			t.Errorf("%q is older than %v: %v", have, oldestServer, got)
		}
	}
}
