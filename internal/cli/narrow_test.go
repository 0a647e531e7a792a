package cli

import (
	"strings"
	"testing"
)

func TestWhereBecomesFilters(t *testing.T) {
	t.Parallel()
	got, err := narrowFlags{Where: "category = 'work'"}.filters()
	if want := `{"field":"category","operator":"eq","value":"work"}`; string(got) != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := (narrowFlags{}).filters(); got != nil || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := (narrowFlags{Where: "kind = 'x' AND catgory = 'work'"}).filters(); err == nil || !strings.Contains(err.Error(), `--where: at character 16: unknown field "catgory"; the nearest known one is "category"`) {
		t.Error(err)
	}
}
