package doctor

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"palimpsest/internal/store"
)

// Checked is the answer of a check of the configuration.
type Checked struct {
	OK bool `json:"ok"`
	// Vectors is the vector space that the memory store serves, VectorsBuilding the one
	// under construction, and VectorsPending how many texts that one lacks.
	Vectors         string `json:"vectors,omitempty"`
	VectorsBuilding string `json:"vectors_building,omitempty"`
	VectorsPending  uint64 `json:"vectors_building_pending,omitempty"`
}

// Describe sets the spaces of a memory store.
func (c *Checked) Describe(spaces store.Spaces, pending uint64) {
	if spaces.Served.Embedder.Name != "" {
		c.Vectors = spaces.Served.Embedder.String()
	}
	if spaces.Next != nil {
		c.VectorsBuilding = spaces.Next.Embedder.String()
	}
	c.VectorsPending = pending
}

// embedder names the vector space of the embedder, and the memory and kernels of one that
// computes with weights.
func (e *examination) embedder() (string, error) {
	opened, err := e.Embedder()
	if err != nil {
		return "", err
	}
	info := opened.Info()
	text := fmt.Sprintf("%s, version %s, %d dimensions", info.Name, info.Version, info.Dimensions)
	if t, ok := opened.(interface {
		Memory() int
		Kernels() string
	}); ok {
		text += fmt.Sprintf(", %s of weights, %s kernels", humanize.IBytes(uint64(t.Memory())), t.Kernels())
	}
	return text, nil
}
