package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// request is the JSON object on standard input of an action. It bears a format number,
// because the worker and the program that it starts may be of two versions: the
// program may have upgraded itself since.
type request struct {
	Action   action    `json:"action"`
	Tenant   string    `json:"tenant,omitzero"`
	Host     string    `json:"host,omitzero"`
	Run      uint64    `json:"run,omitzero"`
	NotAfter time.Time `json:"not-after,omitzero"`
	BootID   string    `json:"boot-id,omitzero"`
	// Fetch is set for plan when it first has to fetch what there is to install.
	Fetch bool `json:"fetch,omitzero"`
	// Staged is set for missing before the reboot.
	Staged bool `json:"staged,omitzero"`
	// Reversed is set for missing when the plan undoes an upgrade.
	Reversed bool `json:"reversed,omitzero"`
	// Boot is what confirm confirms.
	Boot *boot `json:"boot,omitempty"`
	// Rejected are the versions of each name that were rolled back.
	Rejected message.Rejected `json:"rejected,omitempty"`
	// Options are those of a program, as the worker was given them.
	Options json.RawMessage    `json:"options,omitempty"`
	Plan    *message.ChangeSet `json:"plan,omitempty"`
	// Release is what the run installs; nil if it has no release.
	Release *release.Pin `json:"release,omitempty"`
	// RollbackOf is the run that is rolled back, and Was the release that the host had before it.
	RollbackOf uint64       `json:"rollback-of,omitzero"`
	Was        *release.Pin `json:"was,omitempty"`
}

func requestOf(c call, options json.RawMessage) request {
	job := c.job
	r := request{
		Action: c.action, Tenant: job.Tenant, Host: job.Host, Run: job.Run, NotAfter: job.NotAfter.UTC(), BootID: job.BootID,
		Staged: job.Staged, Reversed: job.Reversed, Fetch: job.Fetch, Rejected: job.Rejected, Options: options, RollbackOf: job.RollbackOf,
	}
	if job.Was != nil {
		r.Was = new(job.Was.Pin(wasName))
	}
	if !job.Plan.Empty() {
		r.Plan = &job.Plan
	}
	if job.Release != nil {
		r.Release = new(job.Release.Pin(job.ReleaseName))
	}
	if c.boot != (strategy.Boot{}) {
		r.Boot = &boot{Running: c.boot.Running, Failed: c.boot.Failed}
	}
	return r
}

// wasName stands for the name of the release from before, which no strategy needs.
const wasName = "was"

// job returns the job of a request.
func (r request) job(progress func(int, string)) (strategy.Job, error) {
	job := strategy.Job{
		Tenant: r.Tenant, Host: r.Host, Run: r.Run, NotAfter: r.NotAfter, BootID: r.BootID,
		Staged: r.Staged, Reversed: r.Reversed, Fetch: r.Fetch, Rejected: r.Rejected, Progress: progress, RollbackOf: r.RollbackOf,
	}
	if r.Was != nil {
		was, err := r.Was.Release()
		if err != nil {
			return strategy.Job{}, strategy.Fail(message.Artifact, err)
		}
		job.Was = &was
	}
	if r.Plan != nil {
		job.Plan = *r.Plan
	}
	if r.Release != nil {
		installs, err := r.Release.Release()
		if err != nil {
			return strategy.Job{}, strategy.Fail(message.Artifact, err)
		}
		job.Release, job.ReleaseName = &installs, r.Release.Name
	}
	return job, nil
}

// open writes the request to a file and opens it. The action finds it complete even if
// the worker dies now, and of any length: a pipe holds but 4 KiB on every system. The
// lock is held, so no other call has the file.
func (r request) open(stateDir string) (*os.File, error) {
	data, err := format.Action.Encode(r)
	if err != nil {
		return nil, err
	}
	if err := r.writeRelease(stateDir); err != nil {
		return nil, err
	}
	path := filepath.Join(stateDir, "request.json")
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write its input: %w", err)
	}
	return os.Open(path)
}

// releaseFile is the file of the text of a release, in the state folder.
const releaseFile = "release.json"

// writeRelease writes the text of the release to its file, if there is one. It is a file and no
// variable, because a text may be larger than a variable can be.
func (r request) writeRelease(stateDir string) error {
	if r.Release == nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(stateDir, releaseFile), append(bytes.Clone(r.Release.Text), '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write its release: %w", err)
	}
	return nil
}

// maxBootSize bounds what booted prints, in bytes.
const maxBootSize = 4 << 10

// boot is what the action booted prints, and what confirm gets.
type boot struct {
	Running string `json:"running,omitempty"`
	Failed  string `json:"failed,omitempty"`
}

// parseBoot reads what booted prints.
func parseBoot(printed []byte) (strategy.Boot, error) {
	var b boot
	if err := json.Unmarshal(printed, &b); err != nil {
		return strategy.Boot{}, fmt.Errorf(`%w; print an object such as {"running": "1.1", "failed": "1.2"}`, err)
	}
	for name, version := range map[string]string{"running": b.Running, "failed": b.Failed} {
		if version != message.CleanText(version) || len(version) > message.MaxPlanName {
			return strategy.Boot{}, fmt.Errorf("%s %.100q is not a version: use at most %d bytes of plain text", name, version, message.MaxPlanName)
		}
	}
	if b.Running == "" && b.Failed != "" {
		return strategy.Boot{}, fmt.Errorf("%q has failed, and what runs instead is not told; print \"running\" too", b.Failed)
	}
	return strategy.Boot{Running: b.Running, Failed: b.Failed}, nil
}

// parsePlan reads what plan prints.
func parsePlan(printed []byte) (message.ChangeSet, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(printed, &object); err != nil {
		return message.ChangeSet{}, fmt.Errorf(`%w; print an object such as {"changes": [{"name": "kernel", "from": "6.1.0", "to": "6.1.1"}]}`, err)
	}
	return message.DecodePlan(printed)
}

// parseMissing reads what missing prints: a plan whose changes are missing. Nothing at
// all means that nothing is missing.
func parseMissing(printed []byte) ([]message.Change, error) {
	plan, err := parsePlan(printed)
	return plan.Changes, err
}
