package image

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/download"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// TestWanted checks which image of a release a host gets: the one that says most about it, or none.
func TestWanted(t *testing.T) {
	t.Parallel()
	anyone, amd64 := release.Image{URL: "any"}, release.Image{URL: "amd64", Platform: "linux/amd64"}
	kiosk, both := release.Image{URL: "kiosk", Compatible: "kiosk"}, release.Image{URL: "both", Compatible: "kiosk", Platform: "linux/amd64"}
	arm64, toaster := release.Image{URL: "arm64", Platform: "linux/arm64"}, release.Image{URL: "toaster", Compatible: "toaster"}
	for name, c := range map[string]struct {
		images []release.Image
		url    string
		err    string
	}{
		"one for any host":         {[]release.Image{anyone}, "any", ""},
		"its platform":             {[]release.Image{anyone, arm64, amd64}, "amd64", ""},
		"its kind":                 {[]release.Image{amd64, kiosk, anyone, toaster}, "kiosk", ""},
		"its kind on its platform": {[]release.Image{amd64, kiosk, both, anyone}, "both", ""},
		"another platform":         {[]release.Image{arm64}, "", `release r1: it has no image for this host, which is linux/amd64, compatible with "kiosk"; it has one for linux/arm64`},
		"another kind":             {[]release.Image{toaster}, "", `it has one for any platform compatible with "toaster"`},
		"no images":                {nil, "", "release r1: it has no images, and nothing else can be installed on this host"},
	} {
		for i := range c.images {
			c.images[i].SHA256, c.images[i].Size = "sum of "+c.images[i].URL, 7
		}
		job := strategy.Job{ReleaseName: "r1", Release: &release.Release{Version: "2", Images: c.images}}
		want, err := wanted(job, "linux/amd64", "kiosk")
		if c.err != "" {
			if strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v of class %q; want %q", name, err, strategy.ClassOf(err), c.err)
			}
			continue
		}
		if all := (Want{Release: "r1", Version: "2", URL: c.url, Content: download.Content{SHA256: "sum of " + c.url, Size: 7}}); err != nil || want != all {
			t.Errorf("%s: %+v, %v; want %+v", name, want, err, all)
		}
	}
}
