package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Streams are the standard streams of a program that serves an action.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Standard are the streams of this process.
func Standard() Streams { return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr} }

// Serve carries out one action by a Strategy in this process, as a script would, and
// returns the exit status. It is the other half of Options.Program: so that a strategy
// written in Go outlives the worker, and the worker calls scripts and strategies alike.
// open makes the strategy from Options.Options.
//
// What the strategy itself prints goes to standard error, since standard output of some
// actions is their result.
func Serve(ctx context.Context, name string, open func(options json.RawMessage) (strategy.Strategy, error), std Streams) int {
	v := &server{Streams: std, action: action(name)}
	if v.action.printed() > 0 {
		v.told = std.Err
	} else {
		v.told = std.Out
	}
	outcome, err := v.serve(ctx, open)
	switch {
	case errors.Is(err, strategy.ErrNoPlan), errors.Is(err, strategy.ErrNoRollback), err == nil && outcome == strategy.NotDone:
		return statusNotDone
	case err != nil:
		return v.fail(ctx, err)
	case outcome == strategy.RebootRequired:
		return statusRebootRequired
	}
	return statusDone
}

// server serves one action.
type server struct {
	Streams
	action action
	// told gets lines of progress.
	told io.Writer
}

func (v *server) serve(ctx context.Context, open func(json.RawMessage) (strategy.Strategy, error)) (strategy.Outcome, error) {
	if !slices.Contains(Actions(), string(v.action)) {
		return 0, fmt.Errorf("%.50q is not an action; use one of %s", v.action, strings.Join(Actions(), ", "))
	}
	r, err := readRequest(v.In)
	if err != nil {
		return 0, err
	}
	if r.Action != v.action {
		return 0, fmt.Errorf("the request is one of %q, not of %q", r.Action, v.action)
	}
	s, err := open(r.Options)
	if err != nil {
		return 0, err
	}
	return v.call(ctx, s, r)
}

// readRequest reads a request of a worker, which may be of another version.
func readRequest(from io.Reader) (request, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return request{}, fmt.Errorf("cannot read the request: %w", err)
	}
	var r request
	err = format.Action.Decode(data, &r)
	switch {
	case format.IsUnsupported(err):
		return request{}, fmt.Errorf("the worker's request was %w; restart the worker, so that both are of one version", err)
	case err != nil:
		return request{}, fmt.Errorf("cannot read the request on standard input: %w", err)
	}
	return r, nil
}

func (v *server) call(ctx context.Context, s strategy.Strategy, r request) (strategy.Outcome, error) {
	job, err := r.job(v.progress)
	if err != nil {
		return 0, err
	}
	switch v.action {
	case actionVersions:
		versions, err := s.Versions(ctx)
		return strategy.Done, v.print(versions, err)
	case actionPlan:
		plan, err := s.Plan(ctx, job)
		return strategy.Done, v.print(plan.Sorted(), err)
	case actionPrepare:
		plan, err := s.Prepare(ctx, job)
		return strategy.Done, v.print(map[string]message.ChangeSet{"plan": plan.Sorted()}, err)
	case actionUpgrade:
		return s.Upgrade(ctx, job)
	case actionResume:
		return s.Resume(ctx, job)
	case actionMissing:
		missing, err := s.Missing(ctx, job)
		return strategy.Done, v.print(message.ChangeSet{Changes: missing}.Sorted(), err)
	case actionVerify:
		return strategy.Done, s.Verify(ctx, job)
	case actionRollback:
		return s.Rollback(ctx, job)
	case actionPrepareRollback:
		return strategy.Done, v.prepareRollback(ctx, s, job)
	default:
		return strategy.Done, v.callConfirmer(ctx, s, r)
	}
}

// prepareRollback serves prepare-rollback.
func (v *server) prepareRollback(ctx context.Context, s strategy.Strategy, job strategy.Job) error {
	preparer, can := s.(strategy.RollbackPreparer)
	if !can {
		return strategy.ErrNoRollback
	}
	plan, err := preparer.PrepareRollback(ctx, job)
	return v.print(map[string]message.ChangeSet{"plan": plan.Sorted()}, err)
}

// callConfirmer serves booted and confirm. A strategy with one system has no part in
// them.
func (v *server) callConfirmer(ctx context.Context, s strategy.Strategy, r request) error {
	c, ok := s.(strategy.Confirmer)
	switch {
	case v.action == actionBooted && !ok:
		return v.print(boot{}, nil)
	case v.action == actionBooted:
		b, err := c.Booted(ctx)
		return v.print(boot{Running: b.Running, Failed: b.Failed}, err)
	case !ok || r.Boot == nil:
		return nil
	}
	return c.Confirm(ctx, strategy.Boot{Running: r.Boot.Running, Failed: r.Boot.Failed})
}

// print prints the result of an action, if it has one.
func (v *server) print(result any, err error) error {
	if err != nil {
		return err
	}
	return v.line(v.Out, result)
}

func (v *server) line(to io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = to.Write(append(data, '\n'))
	return err
}

// told is a line of progress.
type told struct {
	Progress *int          `json:"progress,omitempty"`
	Message  string        `json:"message,omitempty"`
	Class    message.Class `json:"class,omitempty"`
}

func (v *server) progress(percent int, text string) {
	t := told{Message: script.Clean([]byte(text))}
	if percent = min(percent, 100); percent >= 0 {
		t.Progress = &percent
	}
	_ = v.line(v.told, t) // Nothing depends on progress.
}

// fail tells an error and its class, and returns the exit status.
// fail tells why the action has failed. One that was stopped, as by systemd when somebody
// reboots this host, is resumed.
func (v *server) fail(ctx context.Context, err error) int {
	class := cmp.Or(strategy.ClassOf(err), v.action.class())
	if ctx.Err() != nil {
		class = message.Transient
	}
	if v.line(v.told, told{Message: script.Clean([]byte(err.Error())), Class: class}) != nil {
		_, _ = fmt.Fprintln(v.Err, err)
	}
	if class == message.Transient {
		return statusTransient
	}
	return statusFailed
}
