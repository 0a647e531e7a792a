package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"palimpsest/internal/filter"
)

// narrowFlags are what searches and lists narrow their rows by.
type narrowFlags struct {
	Where  string `help:"Only rows that match: a condition as in SQL, on the fields of facts and episodes and metadata.<path>." placeholder:"CONDITION"`
	Entity string `help:"Only what concerns the entity of that name or alias." placeholder:"NAME"`
}

// filters is the condition in JSON, nil for none.
func (n narrowFlags) filters() (json.RawMessage, error) {
	if n.Where == "" {
		return nil, nil
	}
	e, err := filter.ParseWhere(n.Where, filter.Memory)
	var refused *filter.Error
	switch {
	case errors.As(err, &refused) && refused.Offset > 0:
		return nil, fmt.Errorf("--where: at character %d: %s", refused.Offset, refused.Reason)
	case errors.As(err, &refused):
		return nil, fmt.Errorf("--where: %s", refused.Reason)
	}
	return filter.JSON(e), err
}
