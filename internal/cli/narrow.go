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
	Entity string `help:"Only facts about the entity with this name or alias." placeholder:"NAME"`
}

// auditFlags are what changes are narrowed by.
type auditFlags struct {
	Where string `help:"Only changes that match: a condition as in SQL, on the fields of audit records." placeholder:"CONDITION"`
}

// filters is the condition in JSON, nil for none.
func (n narrowFlags) filters() (json.RawMessage, error) { return filters(n.Where, filter.Memory) }

// filters is the condition in JSON, nil for none.
func (a auditFlags) filters() (json.RawMessage, error) { return filters(a.Where, filter.Audit) }

func filters(where string, schema filter.Schema) (json.RawMessage, error) {
	if where == "" {
		return nil, nil
	}
	e, err := filter.ParseWhere(where, schema)
	var refused *filter.Error
	switch {
	case errors.As(err, &refused) && refused.Offset > 0:
		return nil, fmt.Errorf("--where: at character %d: %s", refused.Offset, refused.Reason)
	case errors.As(err, &refused):
		return nil, fmt.Errorf("--where: %s", refused.Reason)
	}
	return filter.JSON(e), err
}
