package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// strongbox seals the outputs of steps: what is sealed begins with what it is for.
type strongbox struct{}

const sealedFor = "|"

// Seal implements controller.Secrets.
func (strongbox) Seal(body []byte, purpose string) (string, error) {
	return purpose + sealedFor + string(body), nil
}

// Open implements controller.Secrets and gate.Secrets.
func (strongbox) Open(sealed, purpose string) ([]byte, error) {
	body, fits := strings.CutPrefix(sealed, purpose+sealedFor)
	if !fits {
		return nil, errors.New("sim: it is sealed for another purpose")
	}
	return []byte(body), nil
}

// opened returns the outputs that are sealed.
func (w *World) opened(sealed string) (all map[string]string) {
	_, body, _ := strings.Cut(sealed, sealedFor)
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		w.violated("the outputs %q cannot be read: %v", sealed, err)
	}
	return all
}

// gives adds its outputs to the outcome of a step that is done. They differ each time.
func (w *World) gives(t message.Task, o message.Outcome) message.Outcome {
	if t.Kind != message.Step {
		return o
	}
	values := map[string]string{}
	for _, name := range t.Gives {
		w.given++
		values[name] = fmt.Sprintf("%d of %s in run %d", w.given, t.Stage, t.Run)
	}
	w.oracle.StepGave(t.Key(), values)
	if len(values) > 0 {
		o.Outputs = &message.Outputs{Values: values}
	}
	return o
}

// UsesOutputs implements strategy.OutputsUser.
func (s system) UsesOutputs() bool { return true }

// seesOutputs asks for the outputs of steps, as the script of a strategy does, and tells the oracle.
func (s system) seesOutputs(ctx context.Context, job strategy.Job) error {
	var got map[string]string
	if job.Outputs != nil {
		var err error
		if got, err = job.Outputs(ctx); err != nil {
			return err
		}
	}
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	if s.p.dead() {
		return errDead
	}
	s.m.w.oracle.ScriptSees(s.m.name, job.Run, got)
	return nil
}
