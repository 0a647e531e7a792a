package mem0

import (
	"io"
	"net/http"
	"strconv"
	"testing"
)

func TestInstantIsWithinTheYearsOfJSON(t *testing.T) {
	t.Parallel()
	for _, v := range []any{1e300, -1e300, 99999999999999.0, float64(lastSecond + 1), "0000-01-01", "9999-12-31T23:59:59-01:00", true} {
		if at, ok := instant(v); ok {
			t.Errorf("%v: %v", v, at)
		}
	}
	for _, v := range []any{0.0, float64(firstSecond), float64(lastSecond), "0001-01-01", "9999-12-31"} {
		if at, ok := instant(v); !ok {
			t.Errorf("%v: refused", v)
		} else if _, err := at.MarshalJSON(); err != nil {
			t.Error(err)
		}
	}
}

func TestPagesPastTheEnd(t *testing.T) {
	t.Parallel()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v3/memories/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range []int{3, 92233720368547758, 1<<63 - 1} {
		if got := page(r, []any{1, 2, 3}, number, 200); len(got.Results) != 0 || got.Count != 3 || got.Next != nil {
			t.Errorf("%d: %+v", number, got)
		}
	}
	if got := page(r, []any{1, 2, 3}, 2, 2); len(got.Results) != 1 || got.Next != nil || got.Previous == nil {
		t.Errorf("%+v", got)
	}
}

func TestListRefusesANegativeLimit(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"facts":[]}`) })
	for limit, want := range map[int]int{-1: http.StatusBadRequest, 1: http.StatusOK} {
		body := `{"user_id":"ada","limit":` + strconv.Itoa(limit) + `}`
		if got := do(h, "GET", "/compat/v1/memories/", body); got.Code != want {
			t.Errorf("%d: %d %s", limit, got.Code, got.Body)
		}
	}
}
