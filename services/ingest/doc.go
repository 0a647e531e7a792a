// Package ingest stores incoming episodes.
//
//	episodes ─▶ ingest ─▶ stored
//	              └─▶ memory store (episodes, sessions, vectors)
//
// One loop per partition reads EPISODES in stream order, validates, stores the
// episodes with their ordinals, and announces them, together where several of
// one fact scope wait; there is no model and no embedding on that path. Another loop
// makes the vectors of episodes and facts that have none; it may lag, fail or stop
// without effect on the others.
//
// Ingest may not write anything but episodes, sessions and vectors.
package ingest
