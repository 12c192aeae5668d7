package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// answerTime bounds a try over the network: a peer that accepts and hangs, as
// one that is starting may do, must not take the time of all tries.
const answerTime = 10 * time.Second

var errNoAnswer = errors.New("it did not answer in time")

// probes are how each type of check is tried. The error is a check that never
// could pass here.
var probes = map[string]func(*Runner, message.Task, rollout.Check) (try, error){
	rollout.Exec: func(r *Runner, t message.Task, c rollout.Check) (try, error) {
		return r.script(t, c.Script, c.Args, nil)
	},
	rollout.HTTP: func(r *Runner, _ message.Task, c rollout.Check) (try, error) {
		return r.answered(func(ctx context.Context) error { return r.get(ctx, c) }), nil
	},
	rollout.TCP: func(r *Runner, _ message.Task, c rollout.Check) (try, error) {
		return r.answered(func(ctx context.Context) error { return r.connect(ctx, c.Address) }), nil
	},
	rollout.Systemd: func(r *Runner, _ message.Task, c rollout.Check) (try, error) {
		return func(ctx context.Context) error { return r.active(ctx, c.Unit) }, nil
	},
	rollout.Units: func(r *Runner, t message.Task, c rollout.Check) (try, error) {
		return func(ctx context.Context) error { return r.noneFailed(ctx, t, c) }, nil
	},
	rollout.Load: func(r *Runner, _ message.Task, c rollout.Check) (try, error) {
		return func(context.Context) error { return r.calm(c) }, nil
	},
	rollout.TimeSync: func(r *Runner, _ message.Task, c rollout.Check) (try, error) {
		return func(context.Context) error { return r.synchronised(c) }, nil
	},
	rollout.Prometheus: func(r *Runner, _ message.Task, c rollout.Check) (try, error) {
		return r.answered(func(ctx context.Context) error { return r.query(ctx, c) }), nil
	},
	rollout.Hosts: func(r *Runner, t message.Task, c rollout.Check) (try, error) {
		if r.Hosts == nil {
			return nil, errors.New("hosts are known at the site only")
		}
		return func(ctx context.Context) error { return r.present(ctx, t, c) }, nil
	},
	rollout.Disk: func(r *Runner, _ message.Task, c rollout.Check) (try, error) {
		return func(ctx context.Context) error { return r.space(ctx, c) }, nil
	},
}

// probe returns what tries a check.
func (r *Runner) probe(t message.Task, c rollout.Check) (try, error) {
	probe, known := probes[c.Type]
	if !known {
		return nil, fmt.Errorf("the type %q is unknown to this agent; update it", c.Type)
	}
	return probe(r, t, c)
}

// answered bounds a try by the time for an answer.
func (r *Runner) answered(attempt try) try {
	return func(ctx context.Context) error { return within(ctx, cmp.Or(r.answer, answerTime), attempt) }
}

func (r *Runner) connect(ctx context.Context, address string) error {
	dialer := &net.Dialer{}
	if r.Local != nil {
		dialer = r.Local.Dialer()
	}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil && ctx.Err() != nil {
		return errNoAnswer
	}
	if err != nil {
		return plain(err)
	}
	_ = connection.Close() // That there was one is all that counts.
	return nil
}

func (r *Runner) systemctl() string { return cmp.Or(r.Systemctl, "systemctl") }

// active asks systemd whether a unit is active (systemctl(1), is-active). A
// unit whose name begins with a dash is no option.
func (r *Runner) active(ctx context.Context, unit string) error {
	cmd := exec.Command(r.systemctl(), "is-active", "--", unit)
	cmd.Env = r.environment(message.Task{})
	if err := runProgram(ctx, cmd); err != nil {
		return fmt.Errorf("unit %s is not active: %w", unit, err)
	}
	return nil
}
