package rauc

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// content is that of the bundle of a release.
const content = "the bundle of a release"

// bundleServer is a server of that bundle.
func bundleServer(t *testing.T) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/system.raucb", asked
}

// imageOf is that bundle in a release, for the kind of machine of the fake.
func imageOf(address string) release.Image {
	sum := sha256.Sum256([]byte(content))
	return release.Image{Compatible: "appliance", URL: address, SHA256: hex.EncodeToString(sum[:]), Size: len(content)}
}

func released(job strategy.Job, version string, images ...release.Image) strategy.Job {
	job.Release, job.ReleaseName = &release.Release{Version: version, Images: images}, "r2"
	return job
}

// TestRelease goes to the bundle of a release, whatever the host would find without one.
func TestRelease(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"", "/nonexistent/9.raucb"} {
		address, asked := bundleServer(t)
		h := newHost(t, true, func(o *Options) { o.Bundle = option })
		h.set(func() { h.bundles["content"] = fakeBundle{compatible: "appliance", version: "2"} })
		image := imageOf(address)
		other := release.Image{Compatible: "toaster", URL: address + "/of-a-toaster"}
		job := released(h.job(message.ChangeSet{}), "2", other, image)
		if plan, err := h.s.Plan(t.Context(), job); err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != "2" || asked.Load() != 0 {
			t.Errorf("plan: %+v, %v, asked %d times", plan, err, asked.Load())
		}
		rejected := job
		rejected.Rejected = message.Rejected{"rootfs": {"2"}}
		if plan, err := h.s.Prepare(t.Context(), rejected); err != nil || len(plan.Held) != 1 || asked.Load() != 0 {
			t.Errorf("a rejected version: %+v, %v, asked %d times", plan, err, asked.Load())
		}
		plan, err := h.s.Prepare(t.Context(), job)
		if err != nil || len(plan.Changes) != 1 || plan.Download != int64(len(content)) {
			t.Fatalf("prepare: %+v, %v", plan, err)
		}
		job.Plan = plan
		h.upgrade(job)
		h.reboot()
		if err := h.s.Verify(t.Context(), job); err != nil || !h.complete(job) || h.booted().Running != "2" {
			t.Errorf("verify: %v", err)
		}
		if plan, err := h.s.Prepare(t.Context(), job); err != nil || !plan.Empty() || asked.Load() != 1 {
			t.Errorf("the release that runs is planned as %+v, %v, asked %d times", plan, err, asked.Load())
		}
	}
}

// TestReleaseIsRefused checks what a host does not install: it says why, and touches no slot.
func TestReleaseIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string
		change  func(image *release.Image)
		text    string
	}{
		"another kind":     {"2", func(i *release.Image) { i.Compatible = "toaster" }, `no image for this host`},
		"another platform": {"2", func(i *release.Image) { i.Platform = "linux/s390x" }, `it has one for linux/s390x compatible with "appliance"`},
		"another sum":      {"2", func(i *release.Image) { i.SHA256 = strings.Repeat("0", 64) }, "its SHA-256 is "},
		"another size":     {"2", func(i *release.Image) { i.Size-- }, "it has 23 bytes, not 22"},
		"another version":  {"3", func(*release.Image) {}, "it has version 2, and the version of release r2 is 3"},
		"no encryption":    {"2", func(i *release.Image) { i.URL = "http://updates.example.org/a.raucb" }, "without encryption"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := bundleServer(t)
			h := newHost(t, true, nil)
			h.set(func() { h.bundles["content"] = fakeBundle{compatible: "appliance", version: "2"} })
			image := imageOf(address)
			c.change(&image)
			plan, err := h.s.Prepare(t.Context(), released(h.job(message.ChangeSet{}), c.version, image))
			if strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), c.text) || !plan.Empty() || h.installed() != 0 {
				t.Errorf("%+v, %v of class %q; want %q", plan, err, strategy.ClassOf(err), c.text)
			}
		})
	}
}

// TestReleaseWithoutVersion learns the version of a release from its bundle.
func TestReleaseWithoutVersion(t *testing.T) {
	t.Parallel()
	address, _ := bundleServer(t)
	h := newHost(t, true, nil)
	h.set(func() { h.bundles["content"] = fakeBundle{compatible: "appliance", version: "2"} })
	job := released(h.job(message.ChangeSet{}), "", imageOf(address))
	if plan, err := h.s.Plan(t.Context(), job); err == nil || !strings.Contains(err.Error(), "no release says its version") {
		t.Errorf("plan: %+v, %v", plan, err)
	}
	for range 2 {
		if plan, err := h.s.Prepare(t.Context(), job); err != nil || len(plan.Changes) != 1 || plan.Changes[0].To != "2" {
			t.Errorf("prepare: %+v, %v", plan, err)
		}
	}
	if plan, err := h.s.Plan(t.Context(), job); err != nil || len(plan.Changes) != 1 {
		t.Errorf("plan of what is here: %+v, %v", plan, err)
	}
}
