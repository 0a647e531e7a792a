package app

import "runtime/debug"

// release is the version of this source tree; its heading in CHANGELOG.md is the
// same.
const release = "0.1.0"

// Version is the release, and behind a plus sign the revision that was built, where
// the build recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return release + "+" + s.Value[:12]
		}
	}
	return release
}
