// Package timex reads the time that a question names: "last Saturday", "between
// May 8th and June 9th", "three sessions ago", "в прошлом месяце". English and
// Russian, counted from a given instant in its zone.
//
// It is pure: no I/O, no state, no clock.
package timex
