// Package scope identifies the owner of data: it names the four levels (project, user,
// agent, session), encodes them for keys and subjects, and derives from them
// the unit of order (the fact scope), the stream partition and the widening
// read. It uses the standard library only and does no I/O.
package scope
