package api

import "time"

// Report is a table of counts.
type Report struct {
	Name string `json:"name"`
	// From and To are the range that was asked for.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Columns in their order; each row has a value for every one.
	Columns []string         `json:"columns"`
	Rows    []map[string]any `json:"rows" doc:"Strings and numbers by column; null for the ratio of nothing to nothing."`
}

// ReportName names a report and its content.
type ReportName struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// ReportNames lists the reports.
type ReportNames struct {
	Reports []ReportName `json:"reports"`
}
