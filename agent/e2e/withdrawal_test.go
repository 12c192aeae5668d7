package e2e

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// TestRotation gives a connected host and a client new credentials and withdraws the
// old ones: nothing is out of service meanwhile, and whoever still has the old ones
// is cut off, also while connected.
func TestRotation(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	f.record()
	f.startSite()
	f.writeHost("h01")
	f.newKey()
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "old")
	f.workers["h01"] = f.startWorker("h01")
	old := f.client()
	f.gather(old, 1)

	// The key: a second one is made and brought to the host, and its worker started
	// with it. That withdraws the first one.
	first := f.ids("key  *acme  *h01")
	if err := os.Rename(f.path("h01", "key"), f.path("h01", "key.old")); err != nil {
		t.Fatal(err)
	}
	f.newKey("--replace")
	f.endsInOrder("worker", f.workers["h01"])
	f.workers["h01"] = f.startWorker("h01") // Its first line follows the site's answer.
	if got := f.ids("key  *acme  *h01"); slices.Equal(got, first) {
		t.Errorf("the first key is let in still: %v", got)
	}
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "new", "--valid", "1d")
	time.Sleep(time.Second) // Four times the interval of the watch.
	if log := read(t, f.path("serve.log")); strings.Contains(log, "connection ended") {
		t.Errorf("the worker with the new key is cut off:\n%s", log)
	}

	// The token.
	f.command(append([]string{"credentials", "remove", "--data", f.dir + "/site"}, f.ids("token  *acme  *old")...)...)
	_, err := old.State(t.Context(), "acme", "")
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != http.StatusUnauthorized {
		t.Errorf("with the old token: %v", err)
	}
	if _, err := f.client().State(t.Context(), "acme", ""); err != nil {
		t.Errorf("with the new token: %v", err)
	}

	// A withdrawn key ends the connection that there is, and no other is let in.
	f.command(append([]string{"credentials", "remove", "--data", f.dir + "/site"}, f.ids("key  *acme  *h01")...)...)
	f.awaitLog("serve", "connection ended: its key was removed")
	f.awaitLog("worker-h01", "does not know the key")
	// The host is let in again as soon as it has a key, without a restart of the site.
	f.endsInOrder("worker", f.workers["h01"])
	if err := os.Rename(f.path("h01", "key"), f.path("h01", "key.withdrawn")); err != nil {
		t.Fatal(err)
	}
	f.newKey()
	f.workers["h01"] = f.startWorker("h01")
}

// newKey makes the key of h01.
func (f *fleet) newKey(more ...string) {
	f.t.Helper()
	const host = "h01"
	f.command(append([]string{"credentials", "host", "--data", f.dir + "/site", "--tenant", "acme", "--host", host, "--out", f.path(host, "key")}, more...)...)
}

// ids returns the ids of the credentials whose line matches.
func (f *fleet) ids(pattern string) []string {
	f.t.Helper()
	var found []string
	for line := range strings.Lines(f.command("credentials", "list", "--data", f.dir+"/site")) {
		if regexp.MustCompile(pattern).MatchString(line) {
			found = append(found, strings.Fields(line)[0])
		}
	}
	if len(found) != 1 {
		f.t.Fatalf("%q are the ids of %s", found, pattern)
	}
	return slices.Clip(found)
}
