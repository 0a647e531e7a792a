// Package version has the version of the program.
package version

import "runtime/debug"

// release is the version of this source tree; its heading in CHANGELOG.md is the
// same.
const release = "0.1.0"

// String returns the release, followed by a plus sign and the revision if the build
// recorded it.
func String() string {
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
