package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// answerTime bounds a try over the network: a peer that accepts and hangs, as
// one that is starting may do, must not take the time of all tries.
const answerTime = 10 * time.Second

var errNoAnswer = errors.New("it did not answer in time")

// probe returns what tries a check. The error is a check that never could pass
// here.
func (r *Runner) probe(t message.Task, c policy.Check) (try, error) {
	switch c.Type {
	case policy.Exec:
		return r.script(t, c.Script, c.Args)
	case policy.HTTP:
		return r.answered(func(ctx context.Context) error { return r.get(ctx, c) }), nil
	case policy.TCP:
		return r.answered(func(ctx context.Context) error { return connect(ctx, c.Address) }), nil
	case policy.Systemd:
		return func(ctx context.Context) error { return r.active(ctx, c.Unit) }, nil
	case policy.Disk:
		return func(ctx context.Context) error { return r.space(ctx, c) }, nil
	default:
		return nil, fmt.Errorf("the type %q is unknown to this agent; update it", c.Type)
	}
}

// answered bounds a try by the time for an answer.
func (r *Runner) answered(attempt try) try {
	return func(ctx context.Context) error { return within(ctx, cmp.Or(r.answer, answerTime), attempt) }
}

func connect(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil && ctx.Err() != nil {
		return errNoAnswer
	}
	if err != nil {
		return err
	}
	_ = connection.Close() // That there was one is all that counts.
	return nil
}

// active asks systemd whether a unit is active (systemctl(1), is-active). A
// unit whose name begins with a dash is no option.
func (r *Runner) active(ctx context.Context, unit string) error {
	program := r.Systemctl
	if program == "" {
		program = "systemctl"
	}
	cmd := exec.Command(program, "is-active", "--", unit)
	cmd.Env = r.environment(message.Task{})
	if err := runProgram(ctx, cmd); err != nil {
		return fmt.Errorf("unit %s is not active: %w", unit, err)
	}
	return nil
}
