package e2e

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// concepts is an endpoint for embeddings with fixed vectors: texts about the same
// concept are similar, other texts only by the words that they share.
type concepts struct {
	url string

	mu   sync.Mutex
	down bool
}

// conceptWords are the words of each concept, in lower case.
var conceptWords = [][]string{
	{"python", "programming", "julia", "code"},
	{"live", "lives", "home", "moved"},
	{"work", "works", "job", "google"},
}

const (
	conceptDimensions = 64
	conceptWeight     = 3
)

func serveConcepts(t *testing.T) *concepts {
	t.Helper()
	c := &concepts{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL + "/v1"
	return c
}

// settings are those of a Palimpsest that uses the endpoint.
func (c *concepts) settings() string {
	return fmt.Sprintf("embedder:\n  model: openai:concepts\n  base_url: %s\n  dimensions: %d\n", c.url, conceptDimensions)
}

// fail makes the endpoint refuse every request, or work again.
func (c *concepts) fail(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *concepts) failing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

// ServeHTTP implements [http.Handler] with OpenAI's format.
func (c *concepts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Input []string }
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err != nil || c.failing() {
		http.Error(w, `{"error":{"message":"out of order"}}`, http.StatusInternalServerError)
		return
	}
	data := []object{}
	for i, text := range asked.Input {
		data = append(data, object{"object": "embedding", "index": i, "embedding": conceptVector(text)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{"object": "list", "model": "concepts", "data": data, "usage": object{"prompt_tokens": 1, "total_tokens": 1}})
}

// conceptVector has a large part for each concept of a text, and a small one for
// each word.
func conceptVector(text string) []float64 {
	v := make([]float64, conceptDimensions)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !('a' <= r && r <= 'z') }) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(word)) // never fails
		v[len(conceptWords)+int(h.Sum32()%uint32(conceptDimensions-len(conceptWords)))]++
		for at, words := range conceptWords {
			for _, each := range words {
				if word == each {
					v[at] = conceptWeight
				}
			}
		}
	}
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	for k := range v {
		v[k] /= math.Sqrt(max(sum, 1))
	}
	return v
}
