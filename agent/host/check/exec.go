package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// script returns the try of an installed script. The script is verified before each
// start, because it may have been replaced since.
//
// What it gives is noted in gives, nil for a script that gives nothing.
func (r *Runner) script(t message.Task, name string, args []string, gives *map[string]string) (try, error) {
	if r.Scripts == "" {
		return nil, fmt.Errorf("script %q is not run: this agent has no folder of scripts; set checks in its configuration", name)
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return nil, fmt.Errorf("script %q is not run: use the plain name of a file in %s", name, r.Scripts)
	}
	path := filepath.Join(r.Scripts, name)
	trust := func() error { return errors.Join(script.CheckFolder(r.Scripts), script.CheckFile(path)) }
	if err := trust(); err != nil {
		return nil, fmt.Errorf("script %q is not run: %w", name, err)
	}
	return func(ctx context.Context) error {
		if err := trust(); err != nil {
			return err
		}
		cmd := &exec.Cmd{Path: path, Args: append([]string{path}, args...), Dir: r.Scripts, Env: r.environment(t)}
		if gives == nil {
			return runProgram(ctx, cmd)
		}
		values, err := r.withOutputs(ctx, t, cmd)
		*gives = values
		return err
	}, nil
}

// Installed returns the names of the scripts that can be run now, in their order.
func (r *Runner) Installed() []string {
	names := []string{}
	if r.Scripts == "" || script.CheckFolder(r.Scripts) != nil {
		return names
	}
	entries, err := os.ReadDir(r.Scripts)
	if err != nil {
		return names
	}
	for _, e := range entries {
		if rollout.ValidScript(e.Name()) && script.CheckFile(filepath.Join(r.Scripts, e.Name())) == nil {
			names = append(names, e.Name())
		}
	}
	return names
}

// runProgram runs a program and kills it when ctx ends. The error is the last line
// of the output and how the program ended.
func runProgram(ctx context.Context, cmd *exec.Cmd) error {
	said, err := script.Run(ctx, cmd)
	killed := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	switch {
	case err == nil:
		return nil
	case killed && said == "":
		return errors.New("it timed out and was killed")
	case killed:
		return fmt.Errorf("it timed out and was killed; its last output was %q", said)
	case said == "":
		return err
	default:
		return fmt.Errorf("%s: %w", said, err)
	}
}

// environment returns the environment of a script. Variables that do not apply are
// absent.
func (r *Runner) environment(t message.Task) []string {
	extra := map[string]string{}
	for name, value := range map[string]string{
		"OSUPGRADE_TENANT": r.Tenant,
		"OSUPGRADE_HOST":   t.Host,
		"OSUPGRADE_KIND":   string(t.Kind),
		"OSUPGRADE_STAGE":  t.Stage,
	} {
		if value != "" {
			extra[name] = value
		}
	}
	if t.Run != 0 && t.Kind != message.Start { // The run has no id yet.
		extra["OSUPGRADE_RUN"] = strconv.FormatUint(t.Run, 10)
	}
	return script.Environment(os.Getenv, extra)
}
