package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
)

// EntityArgs are the arguments of get_entity_info.
type EntityArgs struct {
	Name  string `json:"name" jsonschema:"Its name or another name that it goes by."`
	User  string `json:"user,omitempty" jsonschema:"Identifier of the user. Left out: the user that the server was configured with."`
	Agent string `json:"agent,omitempty" jsonschema:"Identifier of the agent; any unless given."`
}

// EntityInfo is the answer of get_entity_info.
type EntityInfo struct {
	Name        string     `json:"name"`
	Type        string     `json:"type" jsonschema:"person, project, organization, place, concept, tool, event or product."`
	Aliases     []string   `json:"aliases" jsonschema:"Other names."`
	Description string     `json:"description"`
	Mentions    uint64     `json:"mentions"`
	FirstSeen   time.Time  `json:"first_seen"`
	Facts       []Fact     `json:"facts" jsonschema:"Valid facts that mention it, newest first."`
	Relations   []Relation `json:"relations" jsonschema:"What it is related to."`
}

// Relation relates two entities.
type Relation struct {
	Source    string    `json:"source"`
	Predicate string    `json:"predicate"`
	Target    string    `json:"target"`
	Since     time.Time `json:"since"`
}

func (s *server) entity(ctx context.Context, _ *sdk.CallToolRequest, in EntityArgs) (*sdk.CallToolResult, EntityInfo, error) {
	sel, err := s.reads(Whose{User: in.User, Agent: in.Agent})
	if err != nil {
		return nil, EntityInfo{}, err
	}
	e, err := s.memory.Entity(ctx, sel.In(""), in.Name)
	if err != nil {
		return nil, EntityInfo{}, told(err)
	}
	return nil, EntityInfo{
		Name: e.Name, Type: e.Type, Aliases: each(e.Aliases, func(name string) string { return name }), Description: e.Description,
		Mentions: e.MentionCount, FirstSeen: e.FirstSeen, Facts: each(e.Facts, viewFact), Relations: each(e.Relations, viewRelation),
	}, nil
}

func viewRelation(r api.Relation) Relation {
	return Relation{Source: r.Source, Predicate: r.Predicate, Target: r.Target, Since: r.ValidFrom}
}
