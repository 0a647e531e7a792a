package e2e

import "testing"

// scenario is a test that runs in every shape. It receives an instance and its
// tenant there, among others that run at the same time.
type scenario struct {
	name string
	run  func(t *testing.T, i *instance)
}

// scenarios are the table. A name begins with the promise that it holds.
var scenarios = []scenario{
	{"Behaviour", behaves},
	{"Retractions", retractions},
	{"P2ExactlyOnceEffect", exactlyOnceEffect},
	{"P2TheSameFactFromManySessions", theSameFactFromManySessions},
	{"P3OrderPerScope", orderPerScope},
	{"P4NothingChangesWithoutADelta", nothingChangesWithoutADelta},
	{"P5Replayable", replayable},
	{"P6Isolated", isolated},
	{"P6AnotherProjectsIDIsUnknown", anotherProjectsIDIsUnknown},
	{"P8BadInputIsAnswered", badInputIsAnswered},
	{"P8FaultUnknownVersion", unknownVersion},
	{"P8FaultRefusedCandidate", refusedCandidate},
	{"GuardrailUnicode", guardrailUnicode},
	{"GuardrailOwner", guardrailOwner},
	{"GuardrailMarkers", guardrailMarkers},
	{"P9TheHotPathIsCheap", theHotPathIsCheap},
	{"SessionEnd", sessionEnd},
	{"RulesRunOnDemand", rulesRunOnDemand},
	{"MaintenancePrunes", maintenancePrunes},
	{"MaintenanceSummarises", maintenanceSummarises},
	{"UndoTakesBack", undoTakesBack},
	{"Quarantines", quarantines},
	{"FeedbackIsCounted", feedbackIsCounted},
	{"WaitAnswersWithOutcomes", waitAnswersWithOutcomes},
	{"ReadYourWrites", readYourWrites},
	{"AClockThatIsAhead", aheadClock},
	{"AKnownIDWithOtherContent", knownID},
	{"DeletesByLevel", deletesByLevel},
	{"ThePastIsRead", thePastIsRead},
	{"FaultRunawayUpdates", runawayUpdates},
	{"ReplayFollowsAndReportsCount", replayFollowsAndReportsCount},
	{"TheCommandLine", theCommandLine},
	{"PublishNamesTheLine", publishNamesTheLine},
	{"ModelsRemember", modelsRemember},
	{"WebPagesUseNoTools", webPagesUseNoTools},
	{"Mem0Clients", mem0Clients},
	{"Mem0CommandLine", mem0CommandLine},
	{"Mem0Compat", mem0Compat},
	{"Imports", imports},
}

// TestScenarios runs the table in every shape.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			doors := s.start(t)
			for n, row := range scenarios {
				t.Run(row.name, func(t *testing.T) {
					t.Parallel()
					row.run(t, doors[n%len(doors)].as(t, row.name))
				})
			}
		})
	}
}
