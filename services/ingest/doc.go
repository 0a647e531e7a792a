// Package ingest is where episodes come in.
//
//	episodes ─▶ ingest ─▶ stored
//	              └─▶ memory store (episodes, sessions, vectors)
//
// One loop per partition reads EPISODES in stream order, validates, stores the
// episodes with their ordinals, and announces them, together where several of
// one fact scope wait; there is no model and no embedding on that path. A further loop gives vectors to whatever the store
// flags as lacking them, episodes and facts alike; it may lag, fail or stop
// without touching the others.
//
// Ingest may not write anything but episodes, sessions and vectors.
package ingest
