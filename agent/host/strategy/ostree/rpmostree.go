package ostree

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// rpmOSTree is the program rpm-ostree, which layers packages on the commits of a branch.
// Plans are about the commits; the packages come with them.
type rpmOSTree struct{ plain }

// rpmStatus is what rpm-ostree status --json prints, as far as it is used.
type rpmStatus struct {
	Deployments []struct {
		Name         string `json:"osname"`
		Checksum     string `json:"checksum"`
		BaseChecksum string `json:"base-checksum"`
		Version      string `json:"version"`
		BaseVersion  string `json:"base-version"`
		Origin       string `json:"origin"`
		Serial       int    `json:"serial"`
		Booted       bool   `json:"booted"`
		Staged       bool   `json:"staged"`
		Pinned       bool   `json:"pinned"`
	} `json:"deployments"`
	// Transaction is what the daemon does; null if it does nothing.
	Transaction json.RawMessage `json:"transaction"`
}

// busy reports whether the daemon does something.
func (s rpmStatus) busy() bool {
	return len(s.Transaction) > 0 && string(s.Transaction) != "null"
}

// parseRPMStatus reads the output of rpm-ostree status --json. made are the checksums of
// the deployments themselves, which differ from their ids where packages are layered.
func parseRPMStatus(printed string) (all deployments, made []string, status rpmStatus, err error) {
	if err := json.Unmarshal([]byte(printed), &status); err != nil {
		return nil, nil, status, fmt.Errorf("cannot read the output of rpm-ostree status: %w", err)
	}
	for i, d := range status.Deployments {
		if d.Name == "" || d.Checksum == "" {
			return nil, nil, status, fmt.Errorf("cannot read the output of rpm-ostree status: deployment %d has no name or checksum", i)
		}
		all = append(all, deployment{
			name: d.Name, id: cmp.Or(d.BaseChecksum, d.Checksum), serial: d.Serial, label: cmp.Or(d.BaseVersion, d.Version),
			origin: d.Origin, booted: d.Booted, staged: d.Staged, pinned: d.Pinned,
		})
		made = append(made, d.Checksum)
	}
	return all, made, status, nil
}

func (r rpmOSTree) rpm(ctx context.Context, otherwise message.Class, args ...string) (string, error) {
	out, err := r.run(ctx, "rpm-ostree", args...)
	if err != nil && ctx.Err() == nil {
		err = strategy.Fail(classOf(err.Error(), otherwise), err)
	}
	return out, err
}

// Look implements image.Driver.
func (r rpmOSTree) Look(ctx context.Context) (deployments, error) {
	printed, err := r.rpm(ctx, "", "status", "--json")
	if err != nil {
		return nil, err
	}
	all, made, _, err := parseRPMStatus(printed)
	for i := range all {
		d := all[i]
		d.id = made[i]
		all[i].fresh = r.fresh(d) || r.restored(all[i])
	}
	return all, err
}

// Find implements image.Driver, as plain does. rpm-ostree stays on its branch.
func (r rpmOSTree) Find(ctx context.Context, now deployments, task image.Task) (image.Offer, error) {
	running, err := now.running()
	if err != nil {
		return image.Offer{}, err
	}
	if want := task.Want; want.Release != "" && !isCommit(want.URL) && want.URL != running.origin {
		return image.Offer{}, want.Errorf("it is of %s, and this host follows %s; change that by rpm-ostree rebase", want.URL, running.origin)
	}
	return r.plain.Find(ctx, now, task)
}

// Fetch implements image.Driver.
func (r rpmOSTree) Fetch(ctx context.Context, now deployments, task image.Task, offer image.Offer) (image.Offer, error) {
	return offer, r.advance(ctx, now, task.Want, message.Repository, "--download-only")
}

// Deploy deploys what is on disk. What that is, the strategy sees afterwards.
func (r rpmOSTree) Deploy(ctx context.Context, now deployments, task image.Task, _ string) error {
	return r.advance(ctx, now, task.Want, message.Install, "--cache-only")
}

// advance has rpm-ostree go to a commit, or to the newest one of its branch.
func (r rpmOSTree) advance(ctx context.Context, now deployments, want image.Want, otherwise message.Class, how string) error {
	t, err := targetOf(now, want)
	if err != nil {
		return err
	}
	args := []string{"upgrade", how}
	if t.commit != "" {
		args = []string{"deploy", how, t.commit}
	}
	_, err = r.rpm(ctx, otherwise, args...)
	return err
}

// Kept implements image.Driver.
func (rpmOSTree) Kept(now deployments, version string) error {
	return now.checkRollback(version, func(old deployment) remedy.Remedy { return remedy.RPMOSTreeDeploy.With(old.id) })
}

// Restore implements image.Driver.
func (r rpmOSTree) Restore(ctx context.Context, now deployments, version string) error {
	if err := r.Kept(now, version); err != nil {
		return err
	}
	if err := r.restores(version); err != nil {
		return err
	}
	_, err := r.rpm(ctx, message.Install, "rollback")
	return err
}

// checkRollback returns an error for a tool that goes back to the first deployment that does
// not run, and to no other, unless that has a version. otherwise is what deploys another one.
func (all deployments) checkRollback(version string, otherwise func(old deployment) remedy.Remedy) error {
	old, err := all.find(version)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(d deployment) bool { return !d.booted })
	if i < 0 || all[i].id != old.id {
		return strategy.Fail(message.Install, fmt.Errorf("%s is not the deployment to which a rollback goes; %s", version, otherwise(old)))
	}
	return nil
}

// Discard implements image.Driver.
func (r rpmOSTree) Discard(ctx context.Context, now deployments, version string) error {
	if !now.next(version) {
		return nil
	}
	_, err := r.rpm(ctx, message.Install, "cleanup", "--pending")
	return err
}

// Confirm implements image.Driver.
func (r rpmOSTree) Confirm(ctx context.Context, now deployments, failed string) error {
	return now.confirm(ctx, failed, r.Discard)
}

// pollEvery is how often the daemon is asked whether it is done.
const pollEvery = 2 * time.Second

// Idle waits for the daemon, which goes on without the program that has asked it.
func (r rpmOSTree) Idle(ctx context.Context, job strategy.Job) error {
	for {
		printed, err := r.rpm(ctx, "", "status", "--json")
		if err != nil {
			return err
		}
		_, _, status, err := parseRPMStatus(printed)
		if err != nil || !status.busy() {
			return err
		}
		job.Progress(-1, "rpm-ostree is still at work")
		if err := wait.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}
