package message

import (
	"errors"
	"fmt"
	"time"
)

// MaxCompletions is how many completed runs of an environment are kept for those that come after
// it.
const MaxCompletions = 32

// Follow is the run of another environment that a run follows.
type Follow struct {
	// Environment is empty for the default one.
	Environment string `json:"environment,omitempty"`
	Run         uint64 `json:"run"`
}

// Completion is a run of all hosts of an environment that has completed, and when.
type Completion struct {
	Run uint64    `json:"run"`
	At  time.Time `json:"at"`
}

// checkOrder tells what is wrong with what is known of the order of environments.
func checkOrder(environment string, follows []Follow, completed []Completion) error {
	seen := map[string]bool{environment: true}
	for _, f := range follows {
		if err := checkEnvironment(f.Environment); err != nil {
			return fmt.Errorf("follows: %w", err)
		}
		switch {
		case f.Environment == environment:
			return fmt.Errorf("follows: environment %q follows itself", environment)
		case seen[f.Environment]:
			return fmt.Errorf("follows: environment %q is named twice", f.Environment)
		case f.Run == 0:
			return fmt.Errorf("follows: run of environment %q is missing", f.Environment)
		}
		seen[f.Environment] = true
	}
	if n := len(completed); n > MaxCompletions {
		return fmt.Errorf("completed: %d runs are too many; at most %d are kept", n, MaxCompletions)
	}
	for i, c := range completed {
		switch {
		case c.Run == 0 || c.At.IsZero():
			return errors.New("completed: run or at is missing")
		case i > 0 && c.Run <= completed[i-1].Run:
			return fmt.Errorf("completed: run %d is not after run %d", c.Run, completed[i-1].Run)
		}
	}
	return nil
}
