package events

import "embed"

//go:generate go test -run ^(TestSchemas|TestGolden)$ -update .

//go:embed schemas/*.json
var schemas embed.FS

// Schema returns the JSON schema (draft 2020-12) of a kind's data. It describes the
// data as it is written. Readers ignore members that it does not name.
func Schema(k Kind) ([]byte, bool) {
	if k.Noun() == "" {
		return nil, false
	}
	text, err := schemas.ReadFile("schemas/" + string(k) + ".json")
	return text, err == nil
}
