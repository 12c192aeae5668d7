package rauc

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// lie is what a mirror sends instead of a bundle, with the tag and the length of the bundle.
type lie func(w http.ResponseWriter, r *http.Request, bundle []byte)

// damaged sends other bytes in the midst, and flips those of the rest of a download as well.
func damaged(w http.ResponseWriter, r *http.Request, bundle []byte) {
	bundle = bytes.Clone(bundle)
	for i := len(bundle) / 2; i < len(bundle)/2+512; i++ {
		bundle[i] ^= 0xff
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(bundle))
}

// lyingMirror serves the bundles of the appliance as long as it has no lie.
func (a *appliance) lyingMirror() (says *atomic.Pointer[lie]) {
	says = &atomic.Pointer[lie]{}
	a.server.Close()
	a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bundle, err := os.ReadFile(filepath.Join(a.dir, filepath.Base(r.URL.Path)))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"`+filepath.Base(r.URL.Path)+`"`)
		if now := says.Load(); now != nil {
			(*now)(w, r, bundle)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(bundle))
	}))
	a.t.Cleanup(a.server.Close)
	return says
}

// TestRealLyingMirror downloads bundles from a mirror that sends other bytes under the tag of the
// bundle, or those of another bundle after a break. RAUC refuses them, nothing is changed, and
// when the mirror tells the truth the host is prepared and upgraded.
func TestRealLyingMirror(t *testing.T) {
	realhost.Need(t, realhost.Hosts, realhost.Images)
	t.Parallel()
	const size = 2
	a := newAppliance(t, realhost.Images, size)
	a.boot(strategy.Boot{Running: unknown})
	says := a.lyingMirror()
	prepare := func() (message.ChangeSet, error) { return a.s.Prepare(t.Context(), a.job(message.ChangeSet{})) }
	for version, one := range map[string]struct {
		lies []lie
		// class is that of the last failure.
		class message.Class
	}{
		"2": {[]lie{damaged}, message.Artifact},
		"3": {[]lie{func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader("<html>Please log in.</html>"))
		}}, message.Artifact},
		"4": {[]lie{func(w http.ResponseWriter, _ *http.Request, bundle []byte) {
			w.Header().Set("Content-Length", strconv.Itoa(len(bundle)))
			_, _ = io.Copy(w, bytes.NewReader(bundle[:len(bundle)/3]))
			panic(http.ErrAbortHandler)
		}, damaged}, message.Artifact},
	} {
		a.bundle(version, "version "+version, "cert", "appliance", size)
		a.version = version
		before := a.Must("sha256sum /var/slots/* " + grubenv)
		var err error
		for i := range one.lies {
			says.Store(&one.lies[i])
			if _, err = prepare(); err == nil {
				t.Fatalf("%s: it is prepared with what the mirror made up", version)
			}
			t.Logf("%s: %s: %v", version, strategy.ClassOf(err), err)
		}
		if strategy.ClassOf(err) != one.class {
			t.Errorf("%s: the class is %q, want %q: %v", version, strategy.ClassOf(err), one.class, err)
		}
		if after := a.Must("sha256sum /var/slots/* " + grubenv); after != before {
			t.Errorf("%s: the machine is changed:\n%s%s", version, before, after)
		}
		says.Store(nil)
		if _, err := prepare(); err != nil {
			t.Errorf("%s: the mirror tells the truth, and prepare ends with %v", version, err)
		}
	}
	a.upgrade("3")
	if a.runs() != "version 3" {
		t.Errorf("%s runs", a.runs())
	}
}
