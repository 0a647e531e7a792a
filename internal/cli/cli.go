// Package cli is the command line, one file a command.
package cli

// command is a command of the program.
type command struct {
	Name, Help string
	Run        any // a pointer to a struct, as kong takes it
	hidden     bool
}

// commands are all commands, in the order of the data flow.
func commands() []command {
	return []command{
		{Name: "up", Help: "Run everything in one process.", Run: &upCommand{}},
		{Name: "ingest", Help: "Run the ingest service alone.", Run: &serviceCommand{}},
		{Name: "scheduler", Help: "Run the scheduler service alone.", Run: &serviceCommand{}},
		{Name: "extractor", Help: "Run the extractor service alone.", Run: &serviceCommand{}},
		{Name: "decider", Help: "Run the decider service alone.", Run: &serviceCommand{}},
		{Name: "consolidator", Help: "Run the consolidator service alone.", Run: &serviceCommand{}},
		{Name: "query", Help: "Run the query service alone.", Run: &serviceCommand{}},
		{Name: "publish", Help: "Publish messages from standard input: lines of text or JSON.", Run: &publishCommand{}},
		{Name: "search", Help: "Find facts and episodes.", Run: &searchCommand{}},
		{Name: "context", Help: "Assemble what is known for a system prompt.", Run: &contextCommand{}},
		{Name: "episodes", Help: "List episodes, newest first.", Run: &episodesCommand{}},
		{Name: "facts", Help: "List facts, newest first.", Run: &factsCommand{}},
		{Name: "history", Help: "Show all changes of a fact.", Run: &historyCommand{}},
		{Name: "timeline", Help: "Show the facts about a person, a place or a thing over time.", Run: &timelineCommand{}},
		{Name: "explain", Help: "Show why a fact is known.", Run: &explainCommand{}},
		{Name: "correct", Help: "Give a fact a new version.", Run: &correctCommand{}},
		{Name: "confirm", Help: "Confirm a fact, so that it no longer decays.", Run: &confirmCommand{}},
		{Name: "forget", Help: "Close a fact; its history stays.", Run: &forgetCommand{}},
		{Name: "restore", Help: "Bring a closed fact back.", Run: &restoreCommand{}},
		{Name: "end-session", Help: "End a session.", Run: &endSessionCommand{}},
		{Name: "delete-scope", Help: "Close all facts of a user, an agent or a session.", Run: &deleteScopeCommand{}},
		{Name: "undo", Help: "Undo the changes of a request, a message, a run of a rule or a source.", Run: &undoCommand{}},
		{Name: "quarantine", Help: "Stop trusting a message, a session or a source, or trust it again.", Run: &quarantineCommand{}},
		{Name: "erase", Help: "Remove all data of a user permanently.", Run: &eraseCommand{}},
		{Name: "verify-receipt", Help: "Check the receipt of an erasure.", Run: &verifyReceiptCommand{}},
		{Name: "holds", Help: "List and release held changes of facts.", Run: &holdsCommand{}},
		{Name: "rules", Help: "List, run and rehearse consolidation rules.", Run: &rulesCommand{}},
		{Name: "export", Help: "Export all facts in canonical form.", Run: &exportCommand{}},
		{Name: "import", Help: "Import conversations and memories that other programs exported.", Run: &importCommand{}},
		{Name: "mcp", Help: "Serve the Model Context Protocol on standard input and output; start Palimpsest if it is not running.", Run: &mcpCommand{}},
		{Name: "install", Help: "Connect an assistant: its MCP server and hooks.", Run: &installCommand{}},
		{Name: "hook", Help: "Answer a hook of an assistant; install configures the call.", Run: &hookCommand{}, hidden: true},
		{Name: "verify", Help: "Compare memory store, streams and audit log, also while Palimpsest runs.", Run: &verifyCommand{}},
		{Name: "reindex", Help: "Make new vectors after a change of embedder.model; the previous ones are used until all are made.", Run: &reindexCommand{}},
		{Name: "eval", Help: "Measure search against labelled data.", Run: &evalCommand{}},
		{Name: "doctor", Help: "Check versions, ports, data directory, engines, streams and clock.", Run: &doctorCommand{}},
		{Name: "replay", Help: "Replay the audit stream.", Run: &replayCommand{}},
		{Name: "ready", Help: "Check a process's dependencies; exit 1 if not ready.", Run: &readyCommand{}},
		{Name: "ledger", Help: "Account for every episode.", Run: &ledgerCommand{}},
		{Name: "report", Help: "Report deltas, churn, yield, latency and cost.", Run: &reportCommand{}},
		{Name: "deadletter", Help: "List, show, retry and drop refused messages.", Run: &deadletterCommand{}},
		{Name: "digest", Help: "Print the digest of all facts.", Run: &digestCommand{}},
		{Name: "rebuild", Help: "Rebuild the memory store of a stopped Palimpsest from its streams.", Run: &rebuildCommand{}},
		{Name: "chaos", Help: "Kill a test installation repeatedly, and judge the data that it kept.", Run: &chaosCommand{}},
		{Name: "keys", Help: "Create, list, revoke and rotate API keys.", Run: &keysCommand{}},
		{Name: "topology", Help: "Show, apply and compare the streams.", Run: &topologyCommand{}},
		{Name: "config", Help: "Print and check the configuration.", Run: &configCommand{}},
		{Name: "bench", Help: "Measure the cost of Palimpsest relative to the bare engines.", Run: &benchCommand{}},
		{Name: "bench-peer", Help: "Run a process that bench measures.", Run: &benchPeerCommand{}, hidden: true},
		{Name: "version", Help: "Print the version.", Run: &versionCommand{}},
		{Name: "completion", Help: "Print a completion script for bash, zsh or fish.", Run: &completionCommand{}},
		{Name: "man", Help: "Print the manual, or write a page per command to a directory.", Run: &manCommand{}},
	}
}
