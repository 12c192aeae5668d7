package run

import (
	"maps"
	"time"
)

// StepTimes are how long the steps of an environment have taken, by stage: in its run under way, and in
// the earlier ones of which the log still tells. Only forecasts ask for them.
type StepTimes map[string]pace

// add adds how long the step of a stage took when it was done.
func (t StepTimes) add(stage string, took time.Duration) {
	p := t[stage]
	p.add(took)
	t[stage] = p
}

// usual is how long the step of a stage usually takes; false while it was never done.
func (t StepTimes) usual(stage string) (time.Duration, bool) {
	p := t[stage]
	return p.usual, p.count > 0
}

// StepTimes returns how long the steps of the environment have taken. The caller owns them.
func (e *Environment) StepTimes() StepTimes { return maps.Clone(e.stepTimes) }
