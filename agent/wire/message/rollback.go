package message

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Interval are the runs of an environment that a rollback rolls back: from Since to Of, both
// included. It is zero for a run that rolls nothing back.
type Interval struct{ Since, Of uint64 }

// IsZero reports whether nothing is rolled back.
func (i Interval) IsZero() bool { return i == Interval{} }

// Has reports whether a run is one of those.
func (i Interval) Has(run uint64) bool { return run != 0 && i.Since <= run && run <= i.Of }

// String returns the interval as it travels in a header: both runs, with a dash between them.
func (i Interval) String() string {
	if i.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d-%d", i.Since, i.Of)
}

// Runs name the runs in a text: "run 41", or "runs 41 to 57".
func (i Interval) Runs() string {
	if i.Since == i.Of {
		return fmt.Sprintf("run %d", i.Of)
	}
	return fmt.Sprintf("runs %d to %d", i.Since, i.Of)
}

// ParseInterval reads what String has returned.
func ParseInterval(text string) (Interval, error) {
	if text == "" {
		return Interval{}, nil
	}
	since, of, _ := strings.Cut(text, "-")
	i := Interval{parseRun(since), parseRun(of)}
	if i.Since == 0 || i.Of < i.Since || i.String() != text {
		return Interval{}, fmt.Errorf("runs %.100q are to be two runs, the older one first, such as 41-57", text)
	}
	return i, nil
}

// parseRun reads the number of a run; it is 0 for anything else.
func parseRun(text string) uint64 {
	run, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return run
}

// StepOutputs are the outputs of the step of a stage.
type StepOutputs struct {
	Stage string `json:"stage"`
	Outputs
}

// RollsBack are the runs that a run rolls back.
func (e Opened) RollsBack() Interval {
	if e.RollbackSince == 0 {
		return Interval{e.RollbackOf, e.RollbackOf}
	}
	return Interval{e.RollbackSince, e.RollbackOf}
}

// checkRollback tells what is wrong with the runs that a run rolls back.
func (e Opened) checkRollback() error {
	switch {
	case e.RollbackSince != 0 && e.RollbackSince >= e.RollbackOf:
		return fmt.Errorf("rollback-since: run %d is not before run %d", e.RollbackSince, e.RollbackOf)
	case e.RollbackOf != 0 && e.Release != nil:
		return errors.New("rollback-of: a rollback has no release; each host goes back to what it had")
	case e.RollbackOf == 0 && len(e.Outputs) > 0:
		return errors.New("outputs: it undoes no step")
	}
	for _, of := range e.Outputs {
		if err := cmp.Or(present("stage", of.Stage != ""), of.checkSealed()); err != nil {
			return fmt.Errorf("outputs: %w", err)
		}
	}
	return e.checkUndo()
}

// checkUndo tells which step is undone though the run rolls back no run.
func (e Opened) checkUndo() error {
	for _, s := range e.Rollout.Stages {
		if s.Undo && e.RollbackOf == 0 {
			return fmt.Errorf("rollback-of: it is missing, and stage %q undoes its step", s.Name)
		}
	}
	return nil
}
