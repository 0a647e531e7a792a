package sqlite

import "embed"

// migrations are the scripts of this file's schema.
//
//go:embed migrations/*.sql
var migrations embed.FS
