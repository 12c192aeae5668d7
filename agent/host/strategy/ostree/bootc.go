package ostree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// bootc is the program bootc, which deploys container images. A version is that of the
// image and the beginning of its digest. A bootc that can download without staging does so
// in prepare, an older one downloads when it upgrades.
type bootc struct{ plain }

// bootcStatus is what bootc status --json prints, as far as it is used.
type bootcStatus struct {
	Status struct {
		Staged         *bootcEntry  `json:"staged"`
		Booted         *bootcEntry  `json:"booted"`
		Rollback       *bootcEntry  `json:"rollback"`
		Others         []bootcEntry `json:"otherDeployments"`
		RollbackQueued bool         `json:"rollbackQueued"`
	} `json:"status"`
}

type bootcEntry struct {
	Image        *bootcImage `json:"image"`
	CachedUpdate *bootcImage `json:"cachedUpdate"`
	Pinned       bool        `json:"pinned"`
	// DownloadOnly: it is on disk, and does not start.
	DownloadOnly bool `json:"downloadOnly"`
	OSTree       *struct {
		Serial    int    `json:"deploySerial"`
		Stateroot string `json:"stateroot"`
	} `json:"ostree"`
}

type bootcImage struct {
	Image struct {
		Image string `json:"image"`
	} `json:"image"`
	Version string `json:"version"`
	Digest  string `json:"imageDigest"`
}

func (i *bootcImage) version() string { return versionOf(i.Version, i.Digest) }

// parseBootcStatus reads the output of bootc status --json.
func parseBootcStatus(printed string) (status bootcStatus, err error) {
	if err = json.Unmarshal([]byte(printed), &status); err != nil {
		return status, fmt.Errorf("cannot read the output of bootc status: %w", err)
	}
	if b := status.Status.Booted; b == nil || b.Image == nil || b.Image.Digest == "" {
		return status, errors.New("the system that runs is not one that bootc has deployed from an image: bootc status names none as booted")
	}
	return status, nil
}

// deployments returns them in the order in which the boot loader takes them.
func (s bootcStatus) deployments() (all deployments) {
	add := func(e *bootcEntry, booted, staged bool) {
		if e == nil || e.Image == nil || e.Image.Digest == "" {
			return
		}
		d := deployment{
			name: "default", id: e.Image.Digest, label: e.Image.Version, origin: e.Image.Image.Image,
			booted: booted, staged: staged, pinned: e.Pinned,
		}
		if e.OSTree != nil {
			d.serial = e.OSTree.Serial
			if e.OSTree.Stateroot != "" {
				d.name = e.OSTree.Stateroot
			}
		}
		all = append(all, d)
	}
	state := s.Status
	if state.Staged != nil && !state.Staged.DownloadOnly {
		add(state.Staged, false, true)
	}
	if state.RollbackQueued {
		add(state.Rollback, false, false)
	}
	add(state.Booted, true, false)
	if !state.RollbackQueued {
		add(state.Rollback, false, false)
	}
	for i := range state.Others {
		add(&state.Others[i], false, false)
	}
	return all
}

func newBootc(o Options) (image.Driver[deployments], error) {
	if o.Ref != "" {
		return nil, errors.New("bootc follows the image that it was given; change that by bootc switch")
	}
	return bootc{plain{o}}, nil
}

func (b bootc) bootc(ctx context.Context, otherwise message.Class, args ...string) (string, error) {
	out, err := b.run(ctx, "bootc", args...)
	if err != nil && ctx.Err() == nil {
		err = strategy.Fail(classOf(err.Error(), otherwise), err)
	}
	return out, err
}

func (b bootc) status(ctx context.Context) (bootcStatus, error) {
	printed, err := b.bootc(ctx, "", "status", "--json")
	if err != nil {
		return bootcStatus{}, err
	}
	return parseBootcStatus(printed)
}

// Look implements image.Driver.
func (b bootc) Look(ctx context.Context) (deployments, error) {
	status, err := b.status(ctx)
	return status.deployments(), err
}

// Known returns the image that bootc saw when it last asked.
func (b bootc) Known(ctx context.Context, _ deployments) (image.Offer, error) {
	status, err := b.status(ctx)
	if err != nil {
		return image.Offer{}, err
	}
	newest := status.Status.Booted.CachedUpdate
	if newest == nil {
		return image.Offer{}, errNotAsked
	}
	return image.Offer{Version: newest.version()}, nil
}

// Find implements image.Driver.
func (b bootc) Find(ctx context.Context, now deployments, _ strategy.Job) (image.Offer, error) {
	if _, err := b.bootc(ctx, message.Repository, "upgrade", "--check"); err != nil {
		return image.Offer{}, err
	}
	offer, err := b.Known(ctx, now)
	if !errors.Is(err, errNotAsked) {
		return offer, err
	}
	// Without a newer image there is nothing to remember.
	running, err := now.running()
	return image.Offer{Version: running.version()}, err
}

// Fetch downloads the image if this bootc can do so without staging it: what is staged
// starts with the next boot, also one that nobody has asked for.
func (b bootc) Fetch(ctx context.Context, _ deployments, _ strategy.Job, offer image.Offer) (image.Offer, error) {
	help, err := b.bootc(ctx, "", "upgrade", "--help")
	if err != nil || !strings.Contains(help, "--download-only") {
		return offer, err
	}
	if _, err := b.bootc(ctx, message.Repository, "upgrade", "--download-only"); err != nil {
		return offer, err
	}
	if ok, err := b.downloaded(ctx, offer.Version); err != nil || !ok {
		return offer, errors.Join(err, strategy.Fail(message.Artifact, fmt.Errorf("the image was replaced while it was downloaded: it is not %s any more; start another run", offer.Version)))
	}
	return offer, nil
}

// downloaded reports whether a version is on disk and does not start yet.
func (b bootc) downloaded(ctx context.Context, version string) (bool, error) {
	status, err := b.status(ctx)
	if err != nil {
		return false, err
	}
	staged := status.Status.Staged
	return staged != nil && staged.DownloadOnly && staged.Image != nil && staged.Image.version() == version, nil
}

// Deploy implements image.Driver.
func (b bootc) Deploy(ctx context.Context, _ deployments, _ strategy.Job, version string) error {
	ok, err := b.downloaded(ctx, version)
	if err != nil {
		return err
	}
	args := []string{"upgrade"}
	if ok {
		args = append(args, "--from-downloaded")
	}
	_, err = b.bootc(ctx, message.Install, args...)
	return err
}

// Restore implements image.Driver.
func (b bootc) Restore(ctx context.Context, now deployments, version string) error {
	if err := now.checkRollback(version, func(old deployment) remedy.Remedy { return remedy.BootcSwitch.With(pinned(old)) }); err != nil {
		return err
	}
	_, err := b.bootc(ctx, message.Install, "rollback")
	return err
}

// pinned returns the image of a deployment by its digest, without the tag that it follows.
func pinned(d deployment) string {
	image, _, _ := strings.Cut(d.origin, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image + "@" + d.id
}

// Discard removes what starts next, for which bootc has no command.
func (b bootc) Discard(ctx context.Context, now deployments, version string) error {
	if !now.next(version) {
		return nil
	}
	_, err := b.ostree(ctx, message.Install, "admin", "undeploy", "0")
	return err
}

// Confirm implements image.Driver.
func (b bootc) Confirm(ctx context.Context, now deployments, failed string) error {
	return now.confirm(ctx, failed, b.Discard)
}
