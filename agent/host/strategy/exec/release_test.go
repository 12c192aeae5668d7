package exec

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// ofData is a release as scripts get it.
func ofData() release.Release {
	return release.Release{Version: "2.1.0", Data: json.RawMessage(`{"image":"<big>","large":"` + strings.Repeat("x", 40_000) + `"}`)}
}

// TestScriptsGetTheRelease checks the variables of a run with a release, and that other runs have
// none.
func TestScriptsGetTheRelease(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{
		"upgrade": `printf '%s\n' "$OSUPGRADE_RELEASE" "$OSUPGRADE_RELEASE_DIGEST" > "$WORK/told"; cp "$OSUPGRADE_RELEASE_JSON" "$WORK/text"; stat -c %a "$OSUPGRADE_RELEASE_JSON" >> "$WORK/told"; cat > "$WORK/request"`,
		"verify":  `env | grep OSUPGRADE_RELEASE > "$WORK/none" || true`,
	})
	s, err := New(h.opts)
	if err != nil {
		t.Fatal(err)
	}
	installs := ofData()
	if _, err := s.Upgrade(t.Context(), strategy.Job{Run: 7, Release: &installs, ReleaseName: "spring"}); err != nil {
		t.Fatal(err)
	}
	if want := "spring\n" + installs.Digest() + "\n600\n"; h.content("told") != want {
		t.Errorf("the script is told %q, not %q", h.content("told"), want)
	}
	if got := strings.TrimSuffix(h.content("text"), "\n"); got != string(installs.Text()) {
		t.Errorf("the file has %d bytes, and the text %d", len(got), len(installs.Text()))
	}
	r, err := readRequest(strings.NewReader(h.content("request")))
	if err != nil {
		t.Fatal(err)
	}
	job, err := r.job(nil)
	if err != nil || job.ReleaseName != "spring" || job.Release.Digest() != installs.Digest() {
		t.Errorf("the request reads as %q %+v, %v", job.ReleaseName, job.Release, err)
	}
	if err := s.Verify(t.Context(), strategy.Job{Run: 8}); err != nil || h.content("none") != "" {
		t.Errorf("a run without a release has %q, %v", h.content("none"), err)
	}
}

// TestRequestWithAnotherText checks that a program refuses a request whose release is not the one that
// its digest says.
func TestRequestWithAnotherText(t *testing.T) {
	t.Parallel()
	installs := ofData()
	pinned := installs.Pin("spring")
	pinned.Text = bytes.Replace(pinned.Text, []byte("2.1.0"), []byte("2.1.1"), 1)
	if _, err := (request{Release: &pinned}).job(nil); err == nil || strategy.ClassOf(err) != "artifact" || !strings.Contains(err.Error(), "instead of "+installs.Digest()) {
		t.Errorf("the error is %v", err)
	}
}

// content is a file of the folder for the tests; empty if it is not there.
func (h *host) content(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(h.path(name))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return string(text)
}
