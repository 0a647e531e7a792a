package eval

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Utterance is one message of a user with labels. Facts, Bearing and Entities are
// alternatives: a line has the label that is known of it.
type Utterance struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Prev is the turn of the assistant before.
	Prev string `json:"prev,omitempty"`
	// Time is when the user said it; zero means [said].
	Time time.Time `json:"ts,omitzero"`
	// Facts are what the user states; an empty list means nothing.
	Facts *[]Label `json:"facts,omitempty"`
	// Bearing tells whether the message states any fact.
	Bearing *bool `json:"pos,omitempty"`
	// Entities are the names in the text.
	Entities *[]NameLabel `json:"entities,omitempty"`
}

// Label is a fact that an utterance states. Category may name several, separated
// by "|", that the fact can be filed under; the first is the one that it counts
// for. A name that is no category of [categoryOf] is compared with nothing.
type Label struct {
	Subject  string `json:"s"`
	Category string `json:"r"`
	Object   string `json:"o"`
	// Negated means that the fact holds no longer.
	Negated bool `json:"neg,omitempty"`
	// Date (YYYY-MM-DD) is when it happens, happened or began.
	Date string `json:"date,omitempty"`
}

// NameLabel is a name in a text. Type may be empty.
type NameLabel struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// said is when an utterance without a time was said.
var said = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// LoadUtterances reads a file of JSON lines, or all files *.jsonl of a directory.
func LoadUtterances(path string) ([]Utterance, error) {
	files, err := filepath.Glob(filepath.Join(path, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	if len(files) == 0 {
		files = []string{path}
	}
	slices.Sort(files)
	var all []Utterance
	for _, file := range files {
		us, err := lines[Utterance](file)
		if err != nil {
			return nil, err
		}
		for i, u := range us {
			if err := u.check(); err != nil {
				return nil, fmt.Errorf("load %s, utterance %d: %w", file, i+1, err)
			}
		}
		all = append(all, us...)
	}
	return all, nil
}

func (u *Utterance) check() error {
	if strings.TrimSpace(u.Text) == "" {
		return errors.New("text is required")
	}
	if u.Facts == nil && u.Bearing == nil && u.Entities == nil {
		return errors.New("one of facts, pos and entities is required")
	}
	if u.Facts == nil {
		return nil
	}
	for _, f := range *u.Facts {
		if _, err := time.Parse(time.DateOnly, f.Date); f.Date != "" && err != nil {
			return fmt.Errorf("date: %w", err)
		}
	}
	return nil
}
