package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Turn is one message of a conversation. ID is unique within it.
type Turn struct {
	Conversation string    `json:"conv"`
	ID           string    `json:"dia_id"`
	Session      int       `json:"session"`
	Time         time.Time `json:"ts"`
	Speaker      string    `json:"speaker"`
	Text         string    `json:"text"`
	Caption      string    `json:"caption"`
}

// Question is asked of one conversation. Evidence lists the ids of the turns that
// answer it.
type Question struct {
	Conversation string `json:"conv"`
	ID           string `json:"qid"`
	Text         string `json:"question"`
	// Now is what relative dates count from; nil means the clock.
	Now      *time.Time `json:"question_date"`
	Category string     `json:"-"`
	Evidence []string   `json:"-"`
}

// Set is a labelled set. Questions without evidence are left out.
type Set struct {
	Name      string
	Turns     []Turn
	Questions []Question
}

// gold is a line of gold.jsonl.
type gold struct {
	ID       string   `json:"qid"`
	Category string   `json:"cat_name"`
	Evidence []string `json:"evidence"`
}

// Load reads turns.jsonl, questions.jsonl and gold.jsonl of a directory.
func Load(dir string) (Set, error) {
	set := Set{Name: filepath.Base(filepath.Clean(dir))}
	turns, err := lines[Turn](filepath.Join(dir, "turns.jsonl"))
	if err != nil {
		return set, err
	}
	questions, err := lines[Question](filepath.Join(dir, "questions.jsonl"))
	if err != nil {
		return set, err
	}
	labels, err := lines[gold](filepath.Join(dir, "gold.jsonl"))
	if err != nil {
		return set, err
	}
	byID := map[string]gold{}
	for _, g := range labels {
		byID[g.ID] = g
	}
	set.Turns = turns
	for _, q := range questions {
		g := byID[q.ID]
		if q.Category, q.Evidence = g.Category, g.Evidence; len(q.Evidence) > 0 {
			set.Questions = append(set.Questions, q)
		}
	}
	if len(set.Turns) == 0 || len(set.Questions) == 0 {
		return set, fmt.Errorf("load %s: no turns, or no questions with evidence", dir)
	}
	return set, nil
}

// maxLine bounds a line of a set, in bytes.
const maxLine = 1 << 20

func lines[T any](path string) (all []T, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	defer func() { _ = file.Close() }()
	in := bufio.NewScanner(file)
	in.Buffer(nil, maxLine)
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var one T
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("load %s, line %d: %w", path, n, err)
		}
		all = append(all, one)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return all, nil
}
