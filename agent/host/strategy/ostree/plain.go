package ostree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// plain is the program ostree. It deploys a commit by its checksum, with an origin that
// says which branch the host follows: so what is deployed is what was planned, also when
// the branch has gone on, and a way back does not end the following.
type plain struct{ Options }

// ostree runs the program; otherwise is the class of a failure that its words do not
// tell.
func (p plain) ostree(ctx context.Context, otherwise message.Class, args ...string) (string, error) {
	out, err := p.run(ctx, "ostree", args...)
	if err != nil && ctx.Err() == nil {
		err = strategy.Fail(classOf(err.Error(), otherwise), err)
	}
	return out, err
}

// Look implements image.Driver.
func (p plain) Look(ctx context.Context) (deployments, error) {
	printed, err := p.status(ctx)
	if err != nil {
		return nil, err
	}
	all, err := parseStatus(printed)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].fresh = p.fresh(all[i])
	}
	return all, nil
}

// status prints the deployments. Where one has no signature and its remote wants signatures,
// ostree ends with an error instead (ostreedev/ostree#2391), unless it is told to leave
// signatures out, which older versions cannot do.
func (p plain) status(ctx context.Context) (string, error) {
	printed, err := p.ostree(ctx, "", "admin", "status")
	if err == nil || !strings.Contains(err.Error(), "no signatures found") {
		return printed, err
	}
	if printed, unsigned := p.ostree(ctx, "", "admin", "status", "--skip-signatures"); unsigned == nil || ctx.Err() != nil {
		return printed, unsigned
	}
	return "", fmt.Errorf("a system on this host has no signature, and its remote wants one: %w; %s", err, remedy.OSTreeSign.With(p.signing()))
}

// signing returns the commands that sign the commit of each deployment. ostree does not tell
// which of them lacks a signature.
func (p plain) signing() string {
	found, _ := filepath.Glob(filepath.Join(p.root, "ostree/deploy/*/deploy/*.origin"))
	var commands []string
	for _, file := range found {
		commit, _, _ := strings.Cut(filepath.Base(file), ".")
		commands = append(commands, "ostree gpg-sign "+commit+" KEY")
	}
	slices.Sort(commands)
	return strings.Join(slices.Compact(commands), "; ")
}

// originFile is the file that says what a deployment follows.
func (p plain) originFile(d deployment) string {
	return filepath.Join(p.root, "ostree/deploy", d.name, "deploy", fmt.Sprintf("%s.%d.origin", d.id, d.serial))
}

// restoredFile has the version of the deployment that a rollback of the tool has chosen to start
// next. Such a deployment is an old one, so nothing else tells it from one that the machine gave up.
func (p plain) restoredFile() string { return filepath.Join(p.StateDir, "restored") }

// restores notes which version a rollback of the tool is to choose.
func (p plain) restores(version string) error {
	if err := os.MkdirAll(p.StateDir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(p.restoredFile(), []byte(version), 0o600)
}

// restored reports whether a deployment was chosen by a rollback of the tool since the machine
// started.
func (p plain) restored(d deployment) bool {
	version, err := os.ReadFile(p.restoredFile())
	return err == nil && string(version) == d.version() && p.sinceStart(p.restoredFile())
}

// fresh reports whether a deployment was made since the machine started: its origin is
// written when it is made, and the mark of OSTree in the start.
func (p plain) fresh(d deployment) bool { return p.sinceStart(p.originFile(d)) }

// sinceStart reports whether a file was written since the machine started.
func (p plain) sinceStart(file string) bool {
	made, err := os.Stat(file)
	if err != nil {
		return false
	}
	started, err := os.Stat(filepath.Join(p.root, "run/ostree-booted"))
	return err == nil && !made.ModTime().Before(started.ModTime())
}

// target is what is to be deployed.
type target struct {
	// ref is the branch that the host follows then, remote and branch its parts.
	ref, remote, branch string
	// commit is the one commit that is wanted; empty for the newest of the branch.
	commit string
}

// pulls is the argument by which ostree pulls the target from its remote.
func (t target) pulls() string {
	if t.commit == "" {
		return t.branch
	}
	return t.branch + "@" + t.commit
}

// targetOf returns what a Want means on a host.
func targetOf(now deployments, want image.Want) (t target, err error) {
	running, err := now.running()
	if err != nil {
		return t, err
	}
	t.ref, t.commit = cmp.Or(want.URL, running.origin), want.Content.SHA256
	if want.Release != "" {
		if isCommit(want.URL) {
			t.ref, t.commit = running.origin, want.URL
		} else if _, _, err := branch(want.URL); err != nil {
			return t, want.Errorf("%w, and no commit", err)
		}
		if sum := want.Content.SHA256; sum != "" && sum != t.commit {
			return t, want.Errorf("its image is commit %s and has the sha256 %s; leave one out", t.commit, sum)
		}
	}
	if t.remote, t.branch, err = branch(t.ref); err != nil {
		return t, fmt.Errorf("the system that runs follows no branch: %w, as the url of an image in a release", err)
	}
	return t, nil
}

// isCommit reports whether a text is the checksum of a commit.
func isCommit(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// Known returns the commit that is wanted, or the one that the branch had when the host asked
// last.
func (p plain) Known(ctx context.Context, now deployments, want image.Want) (image.Offer, error) {
	t, err := targetOf(now, want)
	if err != nil {
		return image.Offer{}, err
	}
	if here, ok := now.of(t.commit); ok {
		return here.offer(want)
	}
	found, err := p.head(ctx, t)
	switch {
	case err != nil && ctx.Err() == nil:
		return image.Offer{}, errNotAsked
	case err != nil:
		return image.Offer{}, err
	}
	return found.offer(want)
}

// head returns the commit that a target is on this host.
func (p plain) head(ctx context.Context, t target) (d deployment, err error) {
	checksum, err := p.ostree(ctx, message.Repository, "rev-parse", cmp.Or(t.commit, t.ref))
	if err != nil {
		return d, err
	}
	d.id = strings.TrimSpace(checksum)
	// A commit need not have a version.
	label, err := p.ostree(ctx, "", "show", "--print-metadata-key=version", d.id)
	if err != nil && ctx.Err() != nil {
		return d, err
	}
	d.label = strings.Trim(strings.TrimSpace(label), "'")
	return d, nil
}

// Find asks the remote for what is wanted, without its content.
func (p plain) Find(ctx context.Context, now deployments, task image.Task) (image.Offer, error) {
	t, err := targetOf(now, task.Want)
	if err != nil {
		return image.Offer{}, err
	}
	if here, ok := now.of(t.commit); ok {
		return here.offer(task.Want)
	}
	// The signature is checked with the commit alone.
	if _, err := p.ostree(ctx, message.Repository, "pull", "--commit-metadata-only", t.remote, t.pulls()); err != nil {
		return image.Offer{}, fmt.Errorf("cannot ask for the newest commit of %s: %w", t.ref, err)
	}
	found, err := p.head(ctx, t)
	if err != nil {
		return image.Offer{}, err
	}
	return found.offer(task.Want)
}

// Fetch pulls the commit that was found.
func (p plain) Fetch(ctx context.Context, now deployments, task image.Task, offer image.Offer) (image.Offer, error) {
	t, err := targetOf(now, task.Want)
	if err != nil {
		return offer, err
	}
	if t.commit, err = p.commit(ctx, offer.Version); err != nil {
		return offer, err
	}
	if _, err := p.ostree(ctx, message.Repository, "pull", t.remote, t.pulls()); err != nil {
		return offer, fmt.Errorf("cannot fetch %s of %s: %w", offer.Version, t.ref, err)
	}
	return offer, nil
}

// commit returns the checksum of a version.
func (p plain) commit(ctx context.Context, version string) (string, error) {
	checksum, err := p.ostree(ctx, message.Artifact, "rev-parse", idOf(version))
	if err != nil {
		return "", fmt.Errorf("the commit of %s is not on this host: %w", version, err)
	}
	return strings.TrimSpace(checksum), nil
}

// Deploy implements image.Driver.
func (p plain) Deploy(ctx context.Context, now deployments, task image.Task, version string) error {
	t, err := targetOf(now, task.Want)
	if err != nil {
		return err
	}
	commit, err := p.commit(ctx, version)
	if err != nil {
		return err
	}
	return p.deployCommit(ctx, now, commit, t.ref)
}

// Kept implements image.Driver.
func (plain) Kept(now deployments, version string) error {
	_, err := now.find(version)
	return err
}

// Restore implements image.Driver. The host follows the branch of before again.
func (p plain) Restore(ctx context.Context, now deployments, version string) error {
	old, err := now.find(version)
	if err != nil {
		return err
	}
	follows := image.Want{}
	if _, _, err := branch(old.origin); err == nil {
		follows.URL = old.origin
	}
	t, err := targetOf(now, follows)
	if err != nil {
		return err
	}
	return p.deployCommit(ctx, now, old.id, t.ref)
}

// deployCommit makes a commit the one that starts next, with the branch that the host follows
// then. Pinned deployments stay.
func (p plain) deployCommit(ctx context.Context, now deployments, commit, ref string) error {
	running, err := now.running()
	if err != nil {
		return err
	}
	origin, err := os.ReadFile(p.originFile(running))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(p.StateDir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(p.StateDir, "origin")
	if err := durable.WriteFile(file, []byte(follow(string(origin), ref)), 0o600); err != nil {
		return err
	}
	if _, err := p.ostree(ctx, message.Install, "admin", "deploy", "--os="+running.name, "--origin-file="+file, commit); err != nil {
		return fmt.Errorf("cannot deploy: %w", err)
	}
	return nil
}

// Discard removes the deployment that starts next. One that is pinned stays, behind
// another one of the commit that runs.
func (p plain) Discard(ctx context.Context, now deployments, version string) error {
	if !now.next(version) {
		return nil
	}
	if now[0].pinned {
		running, err := now.running()
		if err != nil {
			return err
		}
		t, err := targetOf(now, image.Want{})
		if err != nil {
			return err
		}
		return p.deployCommit(ctx, now, running.id, t.ref)
	}
	_, err := p.ostree(ctx, message.Install, "admin", "undeploy", "0")
	return err
}

// Confirm implements image.Driver.
func (p plain) Confirm(ctx context.Context, now deployments, failed string) error {
	return now.confirm(ctx, failed, p.Discard)
}

// Idle has nothing to wait for: the program ends with the action that runs it, and the
// next one waits for the lock of the action before.
func (plain) Idle(context.Context, strategy.Job) error { return nil }
