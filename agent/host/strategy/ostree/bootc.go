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
	all := status.deployments()
	for i, d := range all {
		all[i].fresh = b.restored(d)
	}
	return all, err
}

// wantedImage returns the name and the digest of the image that a release wants; both are empty
// without a release.
func wantedImage(want image.Want) (name, digest string, err error) {
	if want.Release == "" {
		return "", "", nil
	}
	name, digest, _ = strings.Cut(want.URL, "@")
	if sum := want.Content.SHA256; sum != "" {
		if digest != "" && digest != "sha256:"+sum {
			return "", "", want.Errorf("its image has the digest %s and the sha256 %s; leave one out", digest, sum)
		}
		digest = "sha256:" + sum
	}
	if digest == "" {
		return "", "", want.Errorf("its image %s has no digest, so two hosts could get two images; add sha256, or @sha256: and the digest", want.URL)
	}
	return name, digest, nil
}

// Known returns the image that a release wants, or the one that bootc saw when it last asked.
func (b bootc) Known(ctx context.Context, now deployments, want image.Want) (image.Offer, error) {
	_, digest, err := wantedImage(want)
	if err != nil {
		return image.Offer{}, err
	}
	if here, ok := now.of(digest); ok {
		return here.offer(want)
	}
	status, err := b.status(ctx)
	if err != nil {
		return image.Offer{}, err
	}
	newest := status.Status.Booted.CachedUpdate
	switch {
	case newest != nil && (digest == "" || newest.Digest == digest):
		return deployment{id: newest.Digest, label: newest.Version}.offer(want)
	case digest == "":
		return image.Offer{}, errNotAsked
	case want.Version == "":
		return image.Offer{}, want.Errorf("it has no version, and bootc tells that of an image only when it is deployed; add the version that the image has in its label")
	}
	return image.Offer{Version: versionOf(want.Version, digest)}, nil
}

// Find implements image.Driver.
func (b bootc) Find(ctx context.Context, now deployments, task image.Task) (image.Offer, error) {
	_, digest, err := wantedImage(task.Want)
	if err != nil {
		return image.Offer{}, err
	}
	if _, here := now.of(digest); !here {
		if _, err := b.bootc(ctx, message.Repository, "upgrade", "--check"); err != nil {
			return image.Offer{}, err
		}
	}
	offer, err := b.Known(ctx, now, task.Want)
	if !errors.Is(err, errNotAsked) {
		return offer, err
	}
	// Without a newer image there is nothing to remember.
	running, err := now.running()
	return image.Offer{Version: running.version()}, err
}

// Fetch downloads the image if this bootc can do so without staging it: what is staged
// starts with the next boot, also one that nobody has asked for. That is only possible for the
// newest image that the host follows.
func (b bootc) Fetch(ctx context.Context, _ deployments, task image.Task, offer image.Offer) (image.Offer, error) {
	status, err := b.status(ctx)
	if err != nil {
		return offer, err
	}
	if newest := status.Status.Booted.CachedUpdate; newest == nil || newest.version() != offer.Version {
		return offer, nil
	}
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

// Deploy implements image.Driver. An image that was not downloaded is pulled by its digest if a
// release wants that, and else bootc takes the newest.
func (b bootc) Deploy(ctx context.Context, _ deployments, task image.Task, version string) error {
	name, digest, err := wantedImage(task.Want)
	if err != nil {
		return err
	}
	ok, err := b.downloaded(ctx, version)
	if err != nil {
		return err
	}
	args := []string{"upgrade"}
	switch {
	case ok:
		args = append(args, "--from-downloaded")
	case digest != "":
		args = []string{"switch", pinned(deployment{origin: name, id: digest})}
	}
	_, err = b.bootc(ctx, message.Install, args...)
	return err
}

// Kept implements image.Driver.
func (bootc) Kept(now deployments, version string) error {
	return now.checkRollback(version, func(old deployment) remedy.Remedy { return remedy.BootcSwitch.With(pinned(old)) })
}

// Restore implements image.Driver.
func (b bootc) Restore(ctx context.Context, now deployments, version string) error {
	if err := b.Kept(now, version); err != nil {
		return err
	}
	if err := b.restores(version); err != nil {
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
