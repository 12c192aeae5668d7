package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

const (
	// baselineLimit bounds the noting of a baseline: an upgrade waits for it.
	baselineLimit = 30 * time.Second
	// maxUnits bounds the units that are listed as failed, maxListed what systemctl may
	// print of them, in bytes, and maxNamed how many an outcome names.
	maxUnits  = 1000
	maxListed = 1 << 20
	maxNamed  = 10
)

// baseline is what a check after an upgrade compares the host with.
type baseline struct {
	Run uint64 `json:"run"`
	// Failed are the units that had failed before the upgrade.
	Failed []string `json:"failed"`
}

// Baseline notes durably which units of systemd have failed before the upgrade of a
// run; a run that has a baseline keeps it. It does nothing without a folder of state.
func (r *Runner) Baseline(ctx context.Context, run uint64) error {
	if r.State == "" {
		return nil
	}
	if _, err := r.baselineOf(run); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, baselineLimit)
	defer cancel()
	failed, err := r.failedUnits(ctx)
	if err != nil {
		return err
	}
	body, err := format.Baseline.Encode(baseline{Run: run, Failed: failed})
	if err != nil {
		return err
	}
	return durable.WriteFile(r.baselineFile(), append(body, '\n'), 0o600)
}

func (r *Runner) baselineFile() string { return filepath.Join(r.State, "baseline.json") }

var errNoBaseline = errors.New("no baseline was noted in this run")

// baselineOf reads the baseline of a run.
func (r *Runner) baselineOf(run uint64) (baseline, error) {
	if r.State == "" || run == 0 {
		return baseline{}, errNoBaseline
	}
	body, err := os.ReadFile(r.baselineFile())
	if errors.Is(err, os.ErrNotExist) {
		return baseline{}, errNoBaseline
	}
	if err != nil {
		return baseline{}, err
	}
	var noted baseline
	if err := format.Baseline.Decode(body, &noted); err != nil {
		return baseline{}, fmt.Errorf("cannot read %s: %w", r.baselineFile(), err)
	}
	if noted.Run != run {
		return baseline{}, errNoBaseline
	}
	return noted, nil
}

// noneFailed tries a check of units: none has failed but those that had before the
// upgrade of the run, and those that the check ignores. Without a baseline, as before
// the upgrade and at the site, each failed unit counts.
func (r *Runner) noneFailed(ctx context.Context, t message.Task, c rollout.Check) error {
	noted, err := r.baselineOf(t.Run)
	if err != nil && !errors.Is(err, errNoBaseline) {
		return err
	}
	since := ""
	if err == nil {
		since = " since the upgrade"
	}
	failed, err := r.failedUnits(ctx)
	if err != nil {
		return err
	}
	failed = slices.DeleteFunc(failed, func(unit string) bool {
		return slices.Contains(noted.Failed, unit) || slices.Contains(c.Ignore, unit)
	})
	if len(failed) == 0 {
		return nil
	}
	names := strings.Join(failed[:min(len(failed), maxNamed)], ", ")
	if more := len(failed) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%s%s: %s", text.Count(len(failed), "unit has failed", "units have failed"), since, names)
}

// listFailed are the arguments with which systemctl lists the failed units.
const listFailed = "list-units --state=failed --plain --no-legend --full --no-pager"

// failedUnits lists the units of systemd that have failed.
func (r *Runner) failedUnits(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, r.systemctl(), strings.Fields(listFailed)...)
	cmd.Env = r.environment(message.Task{})
	cmd.WaitDelay = time.Second
	var printed, said limitedText
	cmd.Stdout, cmd.Stderr = &printed, &said
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, errNoAnswer
	case err != nil:
		return nil, fmt.Errorf("cannot list the failed units: %w %s", err, message.CleanText(said.String()))
	case printed.Len() >= maxListed:
		return nil, fmt.Errorf("cannot list the failed units: systemctl prints more than %d bytes", maxListed)
	}
	return parseUnits(printed.String())
}

// parseUnits returns the names in a list of units, in order.
func parseUnits(list string) ([]string, error) {
	units := []string{}
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if !rollout.ValidUnit(fields[0]) {
			return nil, fmt.Errorf("cannot list the failed units: systemctl prints %.100q, which is not the name of a unit", fields[0])
		}
		units = append(units, fields[0])
	}
	if len(units) > maxUnits {
		return nil, fmt.Errorf("%d units have failed, which is more than can be compared; use at most %d", len(units), maxUnits)
	}
	slices.Sort(units)
	return units, nil
}

// limitedText keeps the first maxListed bytes.
type limitedText struct{ bytes.Buffer }

// Write implements io.Writer.
func (l *limitedText) Write(p []byte) (int, error) {
	if room := maxListed - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
