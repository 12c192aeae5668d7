package image

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/download"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Want is what is to be deployed: an image of the release of a run or, without a release, the newest
// that the tool finds.
type Want struct {
	// Release is the name of the release; empty for the newest image.
	Release string
	// Version is the version that the image must have; any if it is empty.
	Version string
	// URL is where the image is, in the words of the tool; empty where the tool knows that itself.
	URL string
	// Content is what the image must be.
	Content download.Content
}

// Errorf returns an error about what a release says: the host cannot go to it, and nothing was touched.
func (w Want) Errorf(format string, args ...any) error {
	return strategy.Fail(message.Artifact, fmt.Errorf("release %s: "+format, append([]any{w.Release}, args...)...))
}

// wanted returns what the release of a job wants of a host. compatible is the name of its kind.
func wanted(job strategy.Job, platform, compatible string) (Want, error) {
	want := Want{Release: job.ReleaseName, Version: job.Release.Version}
	images := job.Release.Images
	chosen, found := choose(images, platform, compatible)
	switch {
	case len(images) == 0:
		return want, want.Errorf("it has no images, and nothing else can be installed on this host")
	case !found:
		return want, want.Errorf("it has no image for this host, which is %s, compatible with %.80q; it has one for %s", platform, compatible, kindsOf(images))
	}
	want.URL, want.Content = chosen.URL, download.Content{SHA256: chosen.SHA256, Size: int64(chosen.Size)}
	return want, nil
}

// choose returns the image of a kind of host: among those that fit, the one that says most about it.
func choose(images []release.Image, platform, compatible string) (chosen release.Image, found bool) {
	said := func(image release.Image) (n int) {
		if image.Compatible != "" {
			n += 2
		}
		if image.Platform != "" {
			n++
		}
		return n
	}
	fitting := slices.DeleteFunc(slices.Clone(images), func(image release.Image) bool {
		return image.Platform != "" && image.Platform != platform || image.Compatible != "" && image.Compatible != compatible
	})
	if len(fitting) == 0 {
		return release.Image{}, false
	}
	return slices.MaxFunc(fitting, func(a, b release.Image) int { return cmp.Compare(said(a), said(b)) }), true
}

// kindsOf names the kinds of hosts that some images are for.
func kindsOf(images []release.Image) string {
	kinds := make([]string, 0, len(images))
	for _, image := range images {
		kind := cmp.Or(image.Platform, "any platform")
		if image.Compatible != "" {
			kind += fmt.Sprintf(" compatible with %.80q", image.Compatible)
		}
		kinds = append(kinds, kind)
	}
	return text.List(kinds, 5)
}
