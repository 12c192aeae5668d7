// Package stepcheck plays the scripts of a step: once, twice, killed in the middle, undone and done
// again. It says what to mend. It is for people who write such scripts.
//
// It really does the step, and undoes it, by the runner that does steps in a run. It decides nothing
// about runs.
package stepcheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	runner "github.com/osupgrade/terraform-provider-osupgrade/agent/host/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Options say what is checked, and how.
type Options struct {
	// Runner runs the scripts.
	Runner *runner.Runner
	// Step is the step as a rollout declares it. Undo may be nil.
	Step rollout.Step
	// Host is the host that the scripts are told; empty for a step at the site.
	Host string
	// Outputs are those of earlier steps, by name.
	Outputs map[string]string
	// State is a command for sh -c that prints what the step changes. Without one the scripts are
	// believed.
	State string
	// Reset is a command for sh -c that makes all what it was before the step; without one Undo does.
	Reset string
	// Limit bounds each script.
	Limit time.Duration
}

// Run checks the scripts of a step. report gets each finding as it comes. It returns whether nothing
// failed; an error means that the check itself could not go on.
func Run(ctx context.Context, o Options, report func(check.Finding)) (ok bool, err error) {
	c := &checker{Options: o, report: report, took: map[message.TaskKind]time.Duration{}}
	if err = c.play(ctx); errors.Is(err, errFound) {
		err = nil
	}
	return err == nil && !c.failed, err
}

// errFound ends the check after a failure that makes the rest of it vain.
var errFound = errors.New("the check has found a failure")

type checker struct {
	Options
	report  func(check.Finding)
	failed  bool
	attempt int
	// before and after are what State prints before the step and after it.
	before, after string
	// took is how long the step took, and its undo, when nothing was killed.
	took map[message.TaskKind]time.Duration
}

func (c *checker) say(level check.Level, what, format string, args ...any) {
	c.failed = c.failed || level == check.Fail
	c.report(check.Finding{Level: level, What: what, Text: fmt.Sprintf(format, args...)})
}

// fails reports a failure and ends the check.
func (c *checker) fails(what, format string, args ...any) error {
	c.say(check.Fail, what, format, args...)
	return errFound
}

func (c *checker) play(ctx context.Context) (err error) {
	if err := c.shell(ctx, c.Reset); err != nil {
		return err
	}
	if c.before, err = c.state(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{c.once, c.twice, c.undone, c.killed} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if c.State == "" {
		c.say(check.Note, "state", "the scripts were believed: give --state, a command that prints what the step changes, to compare it")
	}
	return c.shell(ctx, c.Reset)
}

// run runs the step or its undo to its end.
func (c *checker) run(ctx context.Context, kind message.TaskKind) (o message.Outcome, took time.Duration) {
	began := time.Now()
	hook := *kind.HookOf(&c.Step)
	hook.Timeout, hook.Retries, hook.On = rollout.SpanOf(c.Limit), new(int), rollout.OnHost
	if c.Host == "" {
		hook.On = rollout.OnSite
	}
	c.attempt++
	t := message.Task{Run: 1, Kind: kind, Host: c.Host, Stage: "check", Attempt: c.attempt, Hook: &hook, Outputs: c.Outputs}
	if kind == message.Step {
		t.Gives = c.Step.Gives
	}
	return c.Runner.Run(ctx, t), time.Since(began)
}

// does runs the step or its undo, which has to succeed, and lead to a state. why says when and why it
// has to.
func (c *checker) does(ctx context.Context, kind message.TaskKind, what, why string) (message.Outcome, error) {
	o, took := c.run(ctx, kind)
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if !o.OK {
		return o, c.fails(what, "it failed: %s; %s", o.Text, why)
	}
	if c.took[kind] == 0 {
		c.took[kind] = took
	}
	return o, nil
}

// leadsTo compares the state with the one that there must be.
func (c *checker) leadsTo(ctx context.Context, want, what, why string) error {
	now, err := c.state(ctx)
	if err != nil || now == want {
		return err
	}
	return c.fails(what, "the state differs: %s; %s", difference(want, now), why)
}

// once does the step for the first time.
func (c *checker) once(ctx context.Context) error {
	o, err := c.does(ctx, message.Step, "do", "a run would stop here")
	if err != nil {
		return err
	}
	if c.after, err = c.state(ctx); err != nil {
		return err
	}
	c.say(check.OK, "do", "done in %s%s", c.took[message.Step].Round(time.Millisecond), gave(o))
	if c.State != "" && c.before == c.after {
		c.say(check.Note, "state", "it is the same before the step and after it: let --state print what the step changes")
	}
	return nil
}

// twice does the step again, as a run does when an outcome was lost.
func (c *checker) twice(ctx context.Context) error {
	const why = "a run does a step again when its outcome was lost: look first what is done, and do only the rest"
	o, err := c.does(ctx, message.Step, "do again", why)
	if err == nil {
		err = c.leadsTo(ctx, c.after, "do again", why)
	}
	if err != nil {
		return err
	}
	c.say(check.OK, "do again", "nothing was done twice%s", gave(o))
	return nil
}

// undone undoes the step, undoes it again, and does it again.
func (c *checker) undone(ctx context.Context) error {
	if c.Step.Undo == nil {
		c.say(check.Note, "undo", "there is none, so nothing undoes the step")
		return nil
	}
	const lost = "its outcome may be lost, too: look first what is left to undo"
	for _, part := range []struct {
		kind      message.TaskKind
		what, why string
		state     *string
	}{
		{message.Undo, "undo", "undo all that the step has done", &c.before},
		{message.Undo, "undo again", lost, &c.before},
		{message.Step, "do after undo", "leave nothing behind that keeps the step from being done once more", &c.after},
	} {
		_, err := c.does(ctx, part.kind, part.what, part.why)
		if err == nil {
			err = c.leadsTo(ctx, *part.state, part.what, part.why)
		}
		if err != nil {
			return err
		}
		c.say(check.OK, part.what, "as it must be")
	}
	return nil
}

// killed kills the step and its undo, and goes on as a run does.
func (c *checker) killed(ctx context.Context) error {
	if c.Step.Undo == nil && c.Reset == "" {
		c.say(check.Note, "kills", "nothing was killed: give --reset, a command that restores the state before the step, or --undo")
		return nil
	}
	const (
		again = "the machine may go down in the middle of a step: make each change at once, and let a second try go on from any point"
		back  = "a step may be undone that was done by half: undo whatever is there"
	)
	for _, part := range []struct {
		of, then  message.TaskKind
		why       string
		state     *string
		undoneNow bool
	}{
		{message.Step, message.Step, again, &c.after, true},
		{message.Step, message.Undo, back, &c.before, true},
		{message.Undo, message.Undo, again, &c.before, false},
	} {
		if c.Step.Undo == nil && (part.of == message.Undo || part.then == message.Undo) {
			continue
		}
		for _, at := range []struct {
			name  string
			share float64
		}{{"at its start", 0.05}, {"in its middle", 0.5}, {"at its end", 0.9}} {
			if err := c.begin(ctx, part.undoneNow); err != nil {
				return err
			}
			what := fmt.Sprintf("%s after %s was killed %s", names[part.then], names[part.of], at.name)
			if err := c.kill(ctx, part.of, part.then, at.share, what, part.why, *part.state); err != nil {
				return err
			}
		}
	}
	return nil
}

// names are how the parts of a step are called in findings.
var names = map[message.TaskKind]string{message.Step: "do", message.Undo: "undo"}

// begin makes all what it was before the step, and then does the step unless it is to be killed.
func (c *checker) begin(ctx context.Context, undone bool) error {
	if c.Reset != "" {
		if err := c.shell(ctx, c.Reset); err != nil {
			return err
		}
	} else if _, err := c.does(ctx, message.Undo, "undo", "it did not fail before"); err != nil {
		return err
	}
	if undone {
		return nil
	}
	_, err := c.does(ctx, message.Step, "do", "it did not fail before")
	return err
}

// kill runs one part, kills it after a share of its usual time, and runs the one that follows.
func (c *checker) kill(ctx context.Context, of, then message.TaskKind, share float64, what, why, state string) error {
	limited, cancel := context.WithTimeout(ctx, max(time.Millisecond, time.Duration(float64(c.took[of])*share)))
	defer cancel()
	o, _ := c.run(limited, of)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, err := c.does(ctx, then, what, why)
	if err == nil {
		err = c.leadsTo(ctx, state, what, why)
	}
	switch {
	case err != nil:
		return err
	case o.OK:
		c.say(check.Note, what, "%s ended before it could be killed", names[of])
	default:
		c.say(check.OK, what, "as it must be")
	}
	return nil
}

// state is what State prints now; empty without one.
func (c *checker) state(ctx context.Context) (string, error) {
	if c.State == "" {
		return "", nil
	}
	return c.command(ctx, c.State)
}

func (c *checker) shell(ctx context.Context, command string) error {
	if command == "" {
		return nil
	}
	_, err := c.command(ctx, command)
	return err
}

func (c *checker) command(ctx context.Context, command string) (string, error) {
	out, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the command %q failed: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// gave names the outputs of a step, never their values.
func gave(o message.Outcome) string {
	if o.Outputs == nil || len(o.Outputs.Values) == 0 {
		return ""
	}
	return "; it gave " + text.List(slices.Sorted(maps.Keys(o.Outputs.Values)), len(o.Outputs.Values))
}

// difference shows the first line in which two states differ.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		if line(a, i) != line(b, i) {
			return fmt.Sprintf("line %d is %.200q and must be %.200q", i+1, line(b, i), line(a, i))
		}
	}
	return "nothing"
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
